/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 5 of docs/course: the whole bring-up in one function, for this step and those that follow.
 */
#ifndef COURSE_DEVICE_H
#define COURSE_DEVICE_H

#include "step04/admin.h"
#include "step05/events.h"

struct course_device {
	struct course_regs regs;
	struct course_admin admin;
	struct course_eq async;	      /* queue 0: all events but COMPLETION */
	struct course_eq completions; /* queue 1 */
	/* Set before course_device_start(), or NULL.  They must not sleep. */
	void (*async_event)(struct course_device *d, const struct sg_eqe *e);
	void (*completion_event)(struct course_device *d, const struct sg_eqe *e);
};

int course_device_start(struct course_device *d, struct pci_dev *pdev);
void course_device_stop(struct course_device *d);

#endif
