/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The only header that depends on the version of rdma-core, from 44 to 65.  The provider is written
 * for 56.1; CMakeLists.txt looks into the headers for what other versions have (SGP_HAVE_*).
 * docs/kernels.md has the table.
 *
 * Without SGP_HAVE_FLUSH libibverbs has no Flush, and no queue pair can be made for it.
 */
#ifndef STAGHORN_PROVIDER_COMPAT_H
#define STAGHORN_PROVIDER_COMPAT_H

#include <infiniband/driver.h>

/* The completion of a Flush has no name there.  No request has such a completion. */
#ifndef SGP_HAVE_FLUSH
#define IBV_WC_FLUSH IBV_WC_DRIVER3
#endif

/* Descriptors that another process has opened: the device is always opened here. */
#ifdef SGP_HAVE_FD_ARR
#define ibv_cmd_get_context(context, cmd, cmd_size, resp, resp_size) \
	(ibv_cmd_get_context)(context, cmd, cmd_size, NULL, resp, resp_size)
#endif

/* A ring that the core pins: the driver pins ours. */
#ifdef SGP_HAVE_CQ_PROV_ATTR
#define ibv_cmd_create_cq_ex(context, attr, cq, cmd, cmd_size, resp, resp_size, flags) \
	(ibv_cmd_create_cq_ex)(context, attr, NULL, cq, cmd, cmd_size, resp, resp_size, flags)
#endif

/* The driver's part of the command, of which we have none. */
#ifndef SGP_HAVE_DMABUF_DRIVER
#define ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, mr, driver) \
	(ibv_cmd_reg_dmabuf_mr)(pd, offset, length, iova, fd, access, mr)
#endif

#endif
