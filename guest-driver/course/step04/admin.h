/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 4 of docs/course: the admin queue.  Manual: admin.md, commands.md.
 */
#ifndef COURSE_ADMIN_H
#define COURSE_ADMIN_H

#include <linux/mutex.h>
#include <linux/wait.h>

#include <staghorn/admin.h>
#include <staghorn/io.h>

#include "step03/bringup.h"

/* One command is under way at a time. */
struct course_admin {
	struct course_regs *regs;
	struct course_ring sq, cq;
	struct mutex lock;			/* held from the doorbell to the completion */
	wait_queue_head_t wait;			/* woken by nobody before step 5 */
	unsigned long pause;			/* jiffies between two looks at the ring */
	void (*paused)(struct course_admin *a); /* or NULL: called when nobody woke us */
	u16 cookie;
	bool lost; /* no command is tried any more */
};

int course_admin_alloc(struct course_admin *a, struct course_regs *r, u32 entries);
void course_admin_free(struct course_admin *a);
bool course_lost(struct course_admin *a);

/* 0, or a negative errno.  'cmd' begins with struct sg_admin_hdr whose opcode is set. */
int course_command(struct course_admin *a, const void *cmd, size_t len, struct sg_admin_rsp *rsp);
/* A command that makes an object: its number. */
int course_make(struct course_admin *a, const void *cmd, size_t len, u32 *id);
/* A command with a number only. */
int course_end(struct course_admin *a, u8 opcode, u32 id);
int course_query(struct course_admin *a, u8 opcode, u32 id, void *answer, size_t len);

#endif
