/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Tracepoints of the driver, in the system "staghorn" of tracefs.  docs/manual/driver.md has the
 * list.  Each begins with the PCI address of the adapter, as an array, because the arguments of
 * __assign_str() differ between kernels.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM staghorn

#if !defined(SGH_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SGH_TRACE_H

#include <linux/pci.h>
#include <linux/tracepoint.h>
#include <rdma/iw_cm.h>

#include <staghorn/admin.h>
#include <staghorn/io.h>

#include "cm.h"
#include "dev.h"
#include "rendezvous.h"

/* clang-format off */

/* Lists of names, used twice: to tell tracefs the values, and to print them. */
#define SGH_TRACE_OPCODES(F, L)                                                                   \
	F(SG_ADMIN_, NOP) F(SG_ADMIN_, QUERY_CAPS) F(SG_ADMIN_, QUERY_STATS)                      \
	F(SG_ADMIN_, CREATE_EQ) F(SG_ADMIN_, DESTROY_EQ) F(SG_ADMIN_, SET_ADDR)                   \
	F(SG_ADMIN_, SET_PORT) F(SG_ADMIN_, QUERY_QP_STATS) F(SG_ADMIN_, QUERY_MR_STATS)          \
	F(SG_ADMIN_, CREATE_PD) F(SG_ADMIN_, DESTROY_PD) F(SG_ADMIN_, REG_MR)                     \
	F(SG_ADMIN_, DEREG_MR) F(SG_ADMIN_, ALLOC_MR) F(SG_ADMIN_, ALLOC_MW)                      \
	F(SG_ADMIN_, DEALLOC_MW) F(SG_ADMIN_, MAP_PAGES) F(SG_ADMIN_, CREATE_CQ)                  \
	F(SG_ADMIN_, DESTROY_CQ) F(SG_ADMIN_, RESIZE_CQ) F(SG_ADMIN_, MODIFY_CQ)                  \
	F(SG_ADMIN_, MODIFY_MR) F(SG_ADMIN_, CREATE_QP) F(SG_ADMIN_, MODIFY_QP)                   \
	F(SG_ADMIN_, QUERY_QP) F(SG_ADMIN_, DESTROY_QP) F(SG_ADMIN_, CREATE_SRQ)                  \
	F(SG_ADMIN_, MODIFY_SRQ) F(SG_ADMIN_, DESTROY_SRQ) F(SG_ADMIN_, QUERY_SRQ)                \
	F(SG_ADMIN_, RESIZE_SRQ) F(SG_ADMIN_, LISTEN) F(SG_ADMIN_, UNLISTEN)                      \
	F(SG_ADMIN_, CONNECT) F(SG_ADMIN_, ACCEPT) F(SG_ADMIN_, REJECT) F(SG_ADMIN_, CM_DATA)     \
	F(SG_ADMIN_, FLASH_INFO) F(SG_ADMIN_, FLASH_READ) F(SG_ADMIN_, FLASH_WRITE)               \
	L(SG_ADMIN_, FLASH_COMMIT)

#define SGH_TRACE_EVENTS(F, L)                                                                    \
	F(SG_EV_, CQ_ERROR) F(SG_EV_, QP_FATAL) F(SG_EV_, QP_REQ_ERR) F(SG_EV_, QP_ACCESS_ERR)    \
	F(SG_EV_, SRQ_ERROR) F(SG_EV_, SRQ_LIMIT) F(SG_EV_, QP_LAST_WQE) F(SG_EV_, PORT_UP)       \
	F(SG_EV_, PORT_DOWN) F(SG_EV_, DEVICE_FATAL) F(SG_EV_, CM_REQUEST) F(SG_EV_, CM_REPLY)    \
	F(SG_EV_, CM_ESTABLISHED) F(SG_EV_, CM_DISCONNECT) F(SG_EV_, CM_CLOSED)                   \
	L(SG_EV_, PAGE_FAULT)

#define SGH_TRACE_CONN_STATES(F, L)                                                               \
	F(SGH_CONN_, NEW) F(SGH_CONN_, CONNECTING) F(SGH_CONN_, REQUESTED)                        \
	F(SGH_CONN_, ACCEPTING) F(SGH_CONN_, ESTABLISHED) L(SGH_CONN_, GONE)

#define SGH_TRACE_RDV_STATES(F, L)                                                                \
	F(RDV_, OFF) F(RDV_, WAITING) F(RDV_, CALLING) F(RDV_, ANSWERED) F(RDV_, UP) L(RDV_, LEFT)

#define SGH_TRACE_QP_STATES(F, L)                                                                 \
	F(SG_QP_, IDLE) F(SG_QP_, RTS) F(SG_QP_, CLOSING) F(SG_QP_, TERMINATE) L(SG_QP_, ERROR)

#define SGH_TRACE_UPCALLS(F, L)                                                                   \
	F(IW_CM_EVENT_, CONNECT_REQUEST) F(IW_CM_EVENT_, CONNECT_REPLY)                           \
	F(IW_CM_EVENT_, ESTABLISHED) F(IW_CM_EVENT_, DISCONNECT) L(IW_CM_EVENT_, CLOSE)

#define SGH_TRACE_BELLS(F, L) F(SG_DB_, SQ) F(SG_DB_, RQ) F(SG_DB_, SRQ) L(SG_DB_, CQ_ARM)

#define SGH_TRACE_ENUM(prefix, name) TRACE_DEFINE_ENUM(prefix##name);
#define SGH_TRACE_NAME(prefix, name) { prefix##name, #name },
#define SGH_TRACE_LAST(prefix, name) { prefix##name, #name }

SGH_TRACE_OPCODES(SGH_TRACE_ENUM, SGH_TRACE_ENUM)
SGH_TRACE_EVENTS(SGH_TRACE_ENUM, SGH_TRACE_ENUM)
SGH_TRACE_CONN_STATES(SGH_TRACE_ENUM, SGH_TRACE_ENUM)
SGH_TRACE_RDV_STATES(SGH_TRACE_ENUM, SGH_TRACE_ENUM)
SGH_TRACE_QP_STATES(SGH_TRACE_ENUM, SGH_TRACE_ENUM)
SGH_TRACE_UPCALLS(SGH_TRACE_ENUM, SGH_TRACE_ENUM)
SGH_TRACE_BELLS(SGH_TRACE_ENUM, SGH_TRACE_ENUM)

#define sgh_trace_name(value, LIST) __print_symbolic(value, LIST(SGH_TRACE_NAME, SGH_TRACE_LAST))

#define SGH_TRACE_DEV __array(char, device, 16)
#define SGH_TRACE_SET_DEV strscpy(__entry->device, pci_name(dev->pdev), sizeof(__entry->device))

/*
 * Commands: begin comes before the doorbell of the admin queue, end after the answer was read, so
 * what the adapter does is between them.  index is the command's in the submission ring, from 1:
 * the value of the doorbell that announces it.
 */
TRACE_EVENT(sgh_command_begin,
	TP_PROTO(const struct sgh_dev *dev, u8 opcode, u32 index),
	TP_ARGS(dev, opcode, index),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u8, opcode) __field(u32, index)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->opcode = opcode;
		__entry->index = index;
	),
	TP_printk("%s: %s index %u", __entry->device,
		  sgh_trace_name(__entry->opcode, SGH_TRACE_OPCODES), __entry->index)
);

/* status: the adapter's (enum sg_status), or -1: none has come, the adapter is lost. */
TRACE_EVENT(sgh_command_end,
	TP_PROTO(const struct sgh_dev *dev, u8 opcode, u32 index, u32 id, int status, u64 ns),
	TP_ARGS(dev, opcode, index, id, status, ns),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u8, opcode) __field(u32, index) __field(u32, id)
			 __field(int, status) __field(u64, ns)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->opcode = opcode;
		__entry->index = index;
		__entry->id = id;
		__entry->status = status;
		__entry->ns = ns;
	),
	TP_printk("%s: %s index %u id 0x%x status %d, %llu ns", __entry->device,
		  sgh_trace_name(__entry->opcode, SGH_TRACE_OPCODES), __entry->index,
		  __entry->id, __entry->status, __entry->ns)
);

/* An async event, before the driver acts on it. */
TRACE_EVENT(sgh_async_event,
	TP_PROTO(const struct sgh_dev *dev, const struct sg_eqe *e),
	TP_ARGS(dev, e),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u8, event) __field(u8, status) __field(u32, id)
			 __field(u32, conn) __field(u32, aux)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->event = e->event;
		__entry->status = e->cm_status;
		__entry->id = le32_to_cpu(e->id);
		__entry->conn = le32_to_cpu(e->conn);
		__entry->aux = le32_to_cpu(e->aux);
	),
	TP_printk("%s: %s id 0x%x conn %u aux %u status %u", __entry->device,
		  sgh_trace_name(__entry->event, SGH_TRACE_EVENTS), __entry->id, __entry->conn,
		  __entry->aux, __entry->status)
);

/* A doorbell of the kernel; those of processes do not pass the driver. */
TRACE_EVENT(sgh_doorbell,
	TP_PROTO(const struct sgh_dev *dev, u32 bell, u32 number, u32 index),
	TP_ARGS(dev, bell, number, index),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u32, bell) __field(u32, number)
			 __field(u32, index)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->bell = bell;
		__entry->number = number;
		__entry->index = index;
	),
	TP_printk("%s: %s number 0x%x index %u", __entry->device,
		  sgh_trace_name(__entry->bell, SGH_TRACE_BELLS), __entry->number,
		  __entry->index)
);

/* conn 0: the adapter has not told the number yet.  qpn 0: there is no queue pair (yet). */
TRACE_EVENT(sgh_conn_state,
	TP_PROTO(const struct sgh_dev *dev, const struct sgh_conn *conn, u8 from, u8 to),
	TP_ARGS(dev, conn, from, to),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u32, conn) __field(u32, qpn) __field(u8, from)
			 __field(u8, to)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->conn = conn->id;
		__entry->qpn = conn->qp ? conn->qp->qpn : 0;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("%s: conn %u qp %u: %s -> %s", __entry->device, __entry->conn, __entry->qpn,
		  sgh_trace_name(__entry->from, SGH_TRACE_CONN_STATES),
		  sgh_trace_name(__entry->to, SGH_TRACE_CONN_STATES))
);

/* An event for iw_cm, before the upcall. */
TRACE_EVENT(sgh_upcall,
	TP_PROTO(const struct sgh_dev *dev, u32 conn, const struct iw_cm_event *event),
	TP_ARGS(dev, conn, event),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u32, conn) __field(u8, event) __field(int, status)
			 __field(u32, len)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->conn = conn;
		__entry->event = event->event;
		__entry->status = event->status;
		__entry->len = event->private_data_len;
	),
	TP_printk("%s: conn %u: %s status %d, %u octets of private data", __entry->device,
		  __entry->conn, sgh_trace_name(__entry->event, SGH_TRACE_UPCALLS),
		  __entry->status, __entry->len)
);

/* The rendezvous of a queue pair without a connection manager. */
TRACE_EVENT(sgh_rdv_state,
	TP_PROTO(const struct sgh_dev *dev, u32 qpn, u32 conn, u8 from, u8 to),
	TP_ARGS(dev, qpn, conn, from, to),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u32, qpn) __field(u32, conn) __field(u8, from)
			 __field(u8, to)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->qpn = qpn;
		__entry->conn = conn;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("%s: qp %u conn %u: %s -> %s", __entry->device, __entry->qpn, __entry->conn,
		  sgh_trace_name(__entry->from, SGH_TRACE_RDV_STATES),
		  sgh_trace_name(__entry->to, SGH_TRACE_RDV_STATES))
);

/* The driver has asked the adapter for another state of a queue pair. */
TRACE_EVENT(sgh_qp_state,
	TP_PROTO(const struct sgh_dev *dev, u32 qpn, u8 state, int result),
	TP_ARGS(dev, qpn, state, result),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u32, qpn) __field(u8, state) __field(int, result)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->qpn = qpn;
		__entry->state = state;
		__entry->result = result;
	),
	TP_printk("%s: qp %u: -> %s: %d", __entry->device, __entry->qpn,
		  sgh_trace_name(__entry->state, SGH_TRACE_QP_STATES), __entry->result)
);

/* Pages of an on-demand region that the adapter misses. */
TRACE_EVENT(sgh_page_fault,
	TP_PROTO(const struct sgh_dev *dev, u32 stag, u64 page, u64 count, bool write),
	TP_ARGS(dev, stag, page, count, write),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u32, stag) __field(u64, page) __field(u64, count)
			 __field(bool, write)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->stag = stag;
		__entry->page = page;
		__entry->count = count;
		__entry->write = write;
	),
	TP_printk("%s: stag 0x%x pages %llu to %llu, %s", __entry->device, __entry->stag,
		  __entry->page, __entry->page + __entry->count - 1,
		  __entry->write ? "write" : "read")
);

/* The same, when they are there, or those that are left cannot come. */
TRACE_EVENT(sgh_page_fault_end,
	TP_PROTO(const struct sgh_dev *dev, u32 stag, u64 page, u64 left, int result),
	TP_ARGS(dev, stag, page, left, result),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u32, stag) __field(u64, page) __field(u64, left)
			 __field(int, result)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->stag = stag;
		__entry->page = page;
		__entry->left = left;
		__entry->result = result;
	),
	TP_printk("%s: stag 0x%x mapped up to page %llu, %llu left: %d", __entry->device,
		  __entry->stag, __entry->page, __entry->left, __entry->result)
);

/* status and reason: registers STATUS and FATAL before the driver has reset the adapter. */
TRACE_EVENT(sgh_lost,
	TP_PROTO(const struct sgh_dev *dev, u32 status, u32 reason),
	TP_ARGS(dev, status, reason),
	TP_STRUCT__entry(SGH_TRACE_DEV __field(u32, status) __field(u32, reason)),
	TP_fast_assign(
		SGH_TRACE_SET_DEV;
		__entry->status = status;
		__entry->reason = reason;
	),
	TP_printk("%s: status 0x%x reason %u", __entry->device, __entry->status, __entry->reason)
);

/* clang-format on */
#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
