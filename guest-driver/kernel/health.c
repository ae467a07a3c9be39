// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * devlink's health reporter "fatal": adapters that are lost.
 *
 * Whoever notices that the adapter is lost (the periodic check, a command without an answer, an
 * interrupt, AER) calls sgh_fatal().  It resets the adapter, has its users told, and starts
 * recover_work, which reports the loss here.  devlink counts it, stores a dump and calls
 * sgh_health_recover(), unless the administrator has switched that off; then he recovers with
 * "devlink health recover" when he has seen enough.
 *
 * devlink_health_report() takes devlink's lock.  recover_work calls it, and not the periodic check,
 * because the recovery waits for the end of that check.
 *
 * Linux before 6.3 asks for dumps without devlink's lock, so dumps hold up_mutex.
 */
#include <net/devlink.h>

#include "cm.h"
#include "compat.h"
#include "dev.h"
#include "qp.h"
#include "trace.h"

#define SGH_DUMP_QPS 64
#define SGH_DUMP_COMMANDS 8

void sgh_health_lost(struct sgh_dev *dev, const char *why, u32 status, u32 reason, u32 commands)
{
	trace_sgh_lost(dev, status, reason);
	dev->loss.why = why;
	dev->loss.status = status;
	dev->loss.reason = reason;
	dev->loss.commands = commands;
	dev->loss.at = ktime_get_real_seconds();
}

static const char *sgh_health_state(const struct sgh_dev *dev)
{
	if (!dev->up)
		return "down";
	return sgh_dead(dev) ? "lost" : "up";
}

static void sgh_put_loss(struct devlink_fmsg *fmsg, const struct sgh_loss *loss)
{
	if (!loss->why)
		return;
	devlink_fmsg_pair_nest_start(fmsg, "last_loss");
	devlink_fmsg_obj_nest_start(fmsg);
	devlink_fmsg_string_pair_put(fmsg, "why", loss->why);
	devlink_fmsg_u32_pair_put(fmsg, "status", loss->status);
	devlink_fmsg_u32_pair_put(fmsg, "reason", loss->reason);
	devlink_fmsg_u32_pair_put(fmsg, "commands_aborted", loss->commands);
	devlink_fmsg_u64_pair_put(fmsg, "time", loss->at);
	devlink_fmsg_obj_nest_end(fmsg);
	devlink_fmsg_pair_nest_end(fmsg);
}

/* The registers as they are now: of a lost adapter, after its reset. */
static void sgh_put_state(struct devlink_fmsg *fmsg, struct sgh_dev *dev)
{
	devlink_fmsg_string_pair_put(fmsg, "state", sgh_health_state(dev));
	devlink_fmsg_u32_pair_put(fmsg, "status", sgh_read(dev, SG_REG_STATUS));
	devlink_fmsg_u32_pair_put(fmsg, "reason", sgh_read(dev, SG_REG_FATAL));
	devlink_fmsg_u32_pair_put(fmsg, "recoveries", dev->recoveries);
	devlink_fmsg_u32_pair_put(fmsg, "recoveries_max", SGH_RECOVERIES);
}

/* up_mutex held, and the adapter is up or lost: so are the functions below. */
static void sgh_put_rings(struct devlink_fmsg *fmsg, struct sgh_dev *dev)
{
	struct sgh_admin *q = &dev->admin;
	unsigned long flags;
	u32 pi, ci, aeq, waiting;

	spin_lock_irqsave(&q->lock, flags);
	pi = q->pi;
	ci = q->ci;
	spin_unlock_irqrestore(&q->lock, flags);
	spin_lock_irqsave(&dev->aeq_lock, flags);
	aeq = dev->aeq.ci;
	waiting = kfifo_len(&dev->aeq_fifo);
	spin_unlock_irqrestore(&dev->aeq_lock, flags);
	devlink_fmsg_u32_pair_put(fmsg, "commands", pi);
	devlink_fmsg_u32_pair_put(fmsg, "commands_answered", ci);
	devlink_fmsg_u32_pair_put(fmsg, "async_events", aeq);
	devlink_fmsg_u32_pair_put(fmsg, "async_events_waiting", waiting);
}

/* The newest commands: without their contents, which may have keys. */
static void sgh_put_commands(struct devlink_fmsg *fmsg, struct sgh_dev *dev)
{
	struct sgh_admin *q = &dev->admin;
	struct sg_admin_hdr hdr;
	u32 i, n = min_t(u32, q->pi, SGH_DUMP_COMMANDS);

	devlink_fmsg_arr_pair_nest_start(fmsg, "last_commands");
	for (i = q->pi - n; i != q->pi; i++) {
		memcpy(&hdr, q->sq + sg_index_slot(i, SGH_ADMIN_ENTRIES) * SG_ADMIN_CMD_SIZE,
		       sizeof(hdr));
		devlink_fmsg_obj_nest_start(fmsg);
		devlink_fmsg_u32_pair_put(fmsg, "index", i + 1);
		devlink_fmsg_u32_pair_put(fmsg, "opcode", hdr.opcode);
		devlink_fmsg_obj_nest_end(fmsg);
	}
	devlink_fmsg_arr_pair_nest_end(fmsg);
}

static void sgh_put_eqs(struct devlink_fmsg *fmsg, struct sgh_dev *dev)
{
	u32 i;

	devlink_fmsg_arr_pair_nest_start(fmsg, "completion_event_queues");
	for (i = 0; i < dev->num_ceqs; i++) {
		devlink_fmsg_obj_nest_start(fmsg);
		devlink_fmsg_u32_pair_put(fmsg, "eqn", dev->ceqs[i].eqn);
		devlink_fmsg_u32_pair_put(fmsg, "vector", dev->ceqs[i].vector);
		devlink_fmsg_u32_pair_put(fmsg, "events", READ_ONCE(dev->ceqs[i].ci));
		devlink_fmsg_obj_nest_end(fmsg);
	}
	devlink_fmsg_arr_pair_nest_end(fmsg);
}

/* The driver's view of queue pairs.  Rings of processes have no indices here. */
static void sgh_put_qp(struct devlink_fmsg *fmsg, struct sgh_qp *qp)
{
	struct sgh_dev *dev = qp->dev;
	u32 conn = 0;

	spin_lock(&dev->cm_lock);
	if (qp->conn)
		conn = qp->conn->id;
	spin_unlock(&dev->cm_lock);
	devlink_fmsg_obj_nest_start(fmsg);
	devlink_fmsg_u32_pair_put(fmsg, "qpn", qp->qpn);
	devlink_fmsg_bool_pair_put(fmsg, "user", qp->user);
	devlink_fmsg_u32_pair_put(fmsg, "conn", conn);
	if (!qp->user) {
		devlink_fmsg_u32_pair_put(fmsg, "sq_pi", READ_ONCE(qp->sq.pi));
		devlink_fmsg_u32_pair_put(fmsg, "sq_ci", READ_ONCE(qp->sq.ci));
		devlink_fmsg_u32_pair_put(fmsg, "rq_pi", READ_ONCE(qp->rq.pi));
		devlink_fmsg_u32_pair_put(fmsg, "rq_ci", READ_ONCE(qp->rq.ci));
	}
	devlink_fmsg_obj_nest_end(fmsg);
}

static void sgh_put_qps(struct devlink_fmsg *fmsg, struct sgh_dev *dev)
{
	u32 num = 0, left = 0;
	unsigned long qpn;
	struct sgh_qp *qp;

	devlink_fmsg_arr_pair_nest_start(fmsg, "queue_pairs");
	xa_for_each(&dev->qps, qpn, qp) {
		if (num == SGH_DUMP_QPS) {
			left++;
			continue;
		}
		qp = sgh_qp_find(dev, qpn);
		if (!qp)
			continue;
		sgh_put_qp(fmsg, qp);
		sgh_qp_put(qp);
		num++;
	}
	devlink_fmsg_arr_pair_nest_end(fmsg);
	devlink_fmsg_u32_pair_put(fmsg, "queue_pairs_left_out", left);
}

static int sgh_health_diagnose(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			       struct netlink_ext_ack *extack)
{
	struct sgh_dev *dev = devlink_health_reporter_priv(reporter);

	mutex_lock(&dev->up_mutex);
	sgh_put_state(fmsg, dev);
	if (dev->up)
		sgh_put_rings(fmsg, dev);
	sgh_put_loss(fmsg, &dev->loss);
	mutex_unlock(&dev->up_mutex);
	return 0;
}

static int sgh_health_dump(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			   void *ctx, struct netlink_ext_ack *extack)
{
	struct sgh_dev *dev = devlink_health_reporter_priv(reporter);

	mutex_lock(&dev->up_mutex);
	sgh_put_state(fmsg, dev);
	devlink_fmsg_string_pair_put(fmsg, "firmware", dev->caps.fw_version);
	sgh_put_loss(fmsg, &dev->loss);
	if (dev->up) {
		sgh_put_rings(fmsg, dev);
		sgh_put_commands(fmsg, dev);
		sgh_put_eqs(fmsg, dev);
		sgh_put_qps(fmsg, dev);
	}
	mutex_unlock(&dev->up_mutex);
	return 0;
}

/* Under devlink's lock.  An adapter that is lost again and again is left alone. */
static bool sgh_recovery_due(struct sgh_dev *dev)
{
	if (time_after(jiffies, dev->recover_since + SGH_RECOVER_PERIOD)) {
		dev->recover_since = jiffies;
		dev->recoveries = 0;
	}
	if (dev->recoveries == SGH_RECOVERIES)
		return false;
	dev->recoveries++;
	return true;
}

/* Under devlink's lock.  ctx: the driver has reported it; NULL: the administrator wants it. */
static int sgh_health_recover(struct devlink_health_reporter *reporter, void *ctx,
			      struct netlink_ext_ack *extack)
{
	struct sgh_dev *dev = devlink_health_reporter_priv(reporter);

	if (dev->up && !sgh_dead(dev))
		return 0; /* somebody has reloaded it meanwhile */
	if (!READ_ONCE(dev->may_recover)) {
		NL_SET_ERR_MSG_MOD(extack, "the function is being reset or removed");
		return -EBUSY;
	}
	if (ctx && (!(dev->up || dev->recovering) || !sgh_recovery_due(dev))) {
		dev_err(&dev->pdev->dev,
			"adapter is left alone; \"devlink health recover\" starts it\n");
		return -EIO;
	}
	return sgh_restart(dev);
}

/* To try what users of the adapter do when it is lost. */
static int sgh_health_test(struct devlink_health_reporter *reporter, struct netlink_ext_ack *extack)
{
	struct sgh_dev *dev = devlink_health_reporter_priv(reporter);

	if (!dev->up || sgh_dead(dev)) {
		NL_SET_ERR_MSG_MOD(extack, "the adapter is lost already");
		return -EBUSY;
	}
	sgh_fatal(dev, "a test of its recovery");
	return 0;
}

static const struct devlink_health_reporter_ops sgh_health_ops = {
	.name = "fatal",
	.recover = sgh_health_recover,
	.dump = sgh_health_dump,
	.diagnose = sgh_health_diagnose,
	.test = sgh_health_test,
};

/* The adapter is up again by other means.  Under devlink's lock. */
void sgh_health_good(struct sgh_dev *dev)
{
	devlink_health_reporter_state_update(dev->reporter, DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
}

/*
 * From recover_work: nobody who waits for it holds devlink's lock.  devlink cancels what is
 * reported before an earlier loss is recovered, so further attempts go without it: ours, and
 * those behind a report that came while the function was being reset.
 */
void sgh_health_report(struct sgh_dev *dev)
{
	if (!sgh_dead(dev)) /* it was reloaded meanwhile */
		return;
	if (devlink_health_report(dev->reporter, dev->loss.why, dev) != -ECANCELED)
		return;
	devl_lock(dev->devlink);
	if (!sgh_health_recover(dev->reporter, dev, NULL))
		sgh_health_good(dev);
	devl_unlock(dev->devlink);
}

/* Before devlink is registered.  There is no grace period: sgh_recovery_due() has the limit. */
int sgh_health_init(struct sgh_dev *dev)
{
	struct devlink_health_reporter *reporter =
		sgh_health_reporter_create(dev->devlink, &sgh_health_ops, dev);

	if (IS_ERR(reporter))
		return PTR_ERR(reporter);
	dev->reporter = reporter;
	return 0;
}

/* After devlink is unregistered. */
void sgh_health_fini(struct sgh_dev *dev)
{
	devlink_health_reporter_destroy(dev->reporter);
}
