/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Registers and the admin queue (hw.c), interrupts and event queues (eq.c). */
#ifndef SGH_HW_H
#define SGH_HW_H

#include <linux/completion.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include <staghorn/admin.h>
#include <staghorn/io.h>
#include <staghorn/regs.h>
#include <staghorn/ring.h>

#define SGH_ADMIN_ENTRIES 64
#define SGH_AEQ_ENTRIES 1024
#define SGH_CEQ_ENTRIES 8192

struct sgh_dev;

struct sgh_admin_slot {
	struct completion done;
	struct sg_admin_rsp rsp;
	u32 at; /* producer index of the command; the doorbell has the next one */
	bool busy;
	bool aborted;
};

struct sgh_admin {
	spinlock_t lock; /* slots and indices */
	struct semaphore room;
	u8 *sq;
	struct sg_admin_rsp *cq;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;
	u32 pi;
	u32 ci;
	struct sgh_admin_slot slots[SGH_ADMIN_ENTRIES];
};

struct sgh_eq {
	struct sg_eqe *ring;
	dma_addr_t dma;
	u32 entries;
	u32 ci;
	u32 eqn;
	u32 vector;
	/* Of the last health check: was there an unread entry, and where? */
	bool was_unread;
	u32 checked_ci;
};

/* One interrupt vector; vector 0 also serves the async events. */
struct sgh_vector {
	struct sgh_dev *dev;
	u32 index;
	char name[32];
};

struct sgh_caps {
	u32 features;
	u32 hash_mask;
	u32 max_pd, max_mr, max_cq, max_cqe, max_qp, max_qp_wr;
	u32 max_sq_sge, max_rq_sge, max_inline;
	u32 max_ird, max_ord;
	u32 max_fr_pages;
	u32 num_uar, num_eq;
	u32 max_private_data;
	u32 max_srq, max_srq_wr, max_srq_sge;
	u32 max_mw;
	u32 wire; /* enum sg_wire_id */
	u64 max_mr_size;
	u64 page_size_mask;
	char fw_version[17];
};

/* Objects that the adapter numbers and that are found by their number. */
struct sgh_kind {
	u8 create, destroy; /* SG_ADMIN_* */
	size_t table;	    /* offset of its xarray in struct sgh_dev */
	const char *kept;   /* for the log: the adapter is lost if it keeps one */
};

/* hw.c: registers and the admin queue */
int sgh_hw_reset(struct sgh_dev *dev);
int sgh_hw_self_test(struct sgh_dev *dev);
int sgh_hw_enable(struct sgh_dev *dev);
void sgh_health_start(struct sgh_dev *dev);
void sgh_hw_identity(struct sgh_dev *dev);
void sgh_doorbell(struct sgh_dev *dev, u32 bell, u32 number, u32 index);
int sgh_admin_init(struct sgh_dev *dev);
void sgh_admin_fini(struct sgh_dev *dev);
void sgh_admin_poll(struct sgh_dev *dev);
int sgh_admin(struct sgh_dev *dev, u8 opcode, void *cmd, size_t len, struct sg_admin_rsp *rsp);
int sgh_admin_id(struct sgh_dev *dev, u8 opcode, u32 id, struct sg_admin_rsp *rsp);
int sgh_admin_destroy(struct sgh_dev *dev, u8 opcode, u32 id);
int sgh_admin_query(struct sgh_dev *dev, u8 opcode, u32 id, void *out, size_t len);
int sgh_query_caps(struct sgh_dev *dev);
int sgh_object_create(struct sgh_dev *dev, const struct sgh_kind *kind, void *cmd, size_t len,
		      void *object, u32 *id);
int sgh_object_destroy(struct sgh_dev *dev, const struct sgh_kind *kind, u32 id);
void sgh_fatal(struct sgh_dev *dev, const char *why);

/* eq.c: interrupts, event queues */
int sgh_eq_init(struct sgh_dev *dev);
void sgh_eq_fini(struct sgh_dev *dev);
int sgh_irq_init(struct sgh_dev *dev);
void sgh_irq_fini(struct sgh_dev *dev);
int sgh_irq_test(struct sgh_dev *dev);
void sgh_eq_check_all(struct sgh_dev *dev);
int sgh_ceq_init(struct sgh_dev *dev);
void sgh_ceq_fini(struct sgh_dev *dev);
void sgh_ceq_sync(struct sgh_dev *dev, struct sgh_eq *eq);

#endif
