/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Memory regions and windows (mr.c), paging on demand (odp.c). */
#ifndef SGH_MR_H
#define SGH_MR_H

#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "compat.h"
#include "dev.h"

struct sgh_odp;

struct sgh_mw {
	struct ib_mw ibmw;
};

struct sgh_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;
	struct sgh_odp *odp; /* with umem NULL */
	u64 va;		     /* as registered; iova is 0 if zero-based */
	int access;	     /* IB_ACCESS_* */
	u8 hash_alg;	     /* enum sg_hash */
	u8 mem_type;
	u8 mem_mode;
	/* Fast registration: the page list that REG_MR names. */
	__le64 *pages;
	dma_addr_t pages_dma;
	u32 max_pages;
	u32 npages;
};

static inline struct sgh_mr *to_sgh_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct sgh_mr, ibmr);
}

/* mr.c */
u32 sgh_access(int ib_access);
struct ib_mr *sgh_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *sgh_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 va, int access,
			      struct ib_udata *udata);
struct ib_mr *sgh_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int sgh_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset);
struct ib_mr *sgh_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 va, int fd,
				     int access, sgh_reg_dmabuf_arg *arg);
struct ib_mr *sgh_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 va,
				int access, struct ib_pd *new_pd, struct ib_udata *udata);
int sgh_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
int sgh_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int sgh_dealloc_mw(struct ib_mw *ibmw);

/* odp.c */
#if SGH_HAS_ODP
struct sgh_odp *sgh_odp_begin(struct sgh_dev *dev, struct ib_pd *ibpd, struct sg_cmd_reg_mr *cmd,
			      u64 start, u64 *length, u64 va, int access);
int sgh_odp_registered(struct sgh_odp *odp, u32 stag);
int sgh_odp_dereg(struct sgh_odp *odp);
void sgh_odp_end(struct sgh_odp *odp);
void sgh_odp_fault(struct sgh_dev *dev, const struct sg_eqe *e);
int sgh_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		  struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs);
#else
static inline struct sgh_odp *sgh_odp_begin(struct sgh_dev *dev, struct ib_pd *ibpd,
					    struct sg_cmd_reg_mr *cmd, u64 start, u64 *length,
					    u64 va, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

/* There are no on-demand regions, hence neither deregistrations nor faults. */
static inline int sgh_odp_registered(struct sgh_odp *odp, u32 stag)
{
	return -EOPNOTSUPP;
}

static inline int sgh_odp_dereg(struct sgh_odp *odp)
{
	return 0;
}

static inline void sgh_odp_end(struct sgh_odp *odp)
{
}

static inline void sgh_odp_fault(struct sgh_dev *dev, const struct sg_eqe *e)
{
}

#define sgh_advise_mr NULL
#endif

#endif
