// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The PCI function: probe, remove, shutdown, suspend, recovery.
 *
 * Probe brings the adapter up in the order of the programming manual: map, reset, self test, rings,
 * interrupts, enable, capabilities, completion event queues.  The RDMA device comes later, from
 * netdev.c, when the network interface is there.  Remove runs in the reverse order; all memory that
 * it frees after sgh_hw_reset() is no longer accessed by the adapter.
 *
 * An adapter that is lost (it failed, somebody reset it, the machine was restored from a snapshot)
 * is reported to devlink by recover_work, after its users were told.  devlink's health reporter
 * (health.c) takes it down and up again: then there is a new and empty RDMA device.  If it does not
 * answer, or does not come up, that is tried again after longer and longer times.  An adapter that
 * does not stay up is left alone.  Suspend and resume do the same on purpose.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <net/devlink.h>

#include "dev.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static void sgh_init_state(struct sgh_dev *dev)
{
	xa_init(&dev->qps);
	xa_init(&dev->cqs);
	xa_init(&dev->srqs);
	xa_init(&dev->odps);
	xa_init_flags(&dev->counters, XA_FLAGS_ALLOC1);
	xa_init(&dev->listeners);
	xa_init(&dev->conns);
	ida_init(&dev->uars);
	mutex_init(&dev->id_mutex);
	mutex_init(&dev->odp_mutex);
	mutex_init(&dev->listen_mutex);
	mutex_init(&dev->addr_mutex);
	mutex_init(&dev->rdv_mutex);
	spin_lock_init(&dev->cm_lock);
	spin_lock_init(&dev->aeq_lock);
	spin_lock_init(&dev->net_lock);
	init_completion(&dev->test_irq);
	dev->flags = 0;
	dev->aeq_stalled = false;
	dev->fatal_told = false;
	dev->lost_irqs = 0;
	dev->net_stopping = true; /* until sgh_net_init() */
}

static void sgh_fini_state(struct sgh_dev *dev)
{
	WARN_ON(!xa_empty(&dev->qps) || !xa_empty(&dev->cqs) || !xa_empty(&dev->srqs) ||
		!xa_empty(&dev->listeners));
	xa_destroy(&dev->qps);
	xa_destroy(&dev->cqs);
	xa_destroy(&dev->srqs);
	xa_destroy(&dev->odps);
	xa_destroy(&dev->counters);
	xa_destroy(&dev->listeners);
	xa_destroy(&dev->conns);
	ida_destroy(&dev->uars);
}

static int sgh_map(struct sgh_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int ret;

	if (pci_resource_len(pdev, SG_BAR_REGS) < SG_REGS_SIZE ||
	    pci_resource_len(pdev, SG_BAR_DOORBELL) < SG_UAR_SIZE)
		return dev_err_probe(&pdev->dev, -ENODEV, "BARs are missing or too small\n");

	ret = pci_request_regions(pdev, SGH_NAME);
	if (ret)
		return ret;
	dev->regs = pci_iomap(pdev, SG_BAR_REGS, SG_REGS_SIZE);
	dev->db = pci_iomap_range(pdev, SG_BAR_DOORBELL, 0, SG_UAR_SIZE);
	if (dev->regs && dev->db)
		return 0;

	if (dev->regs)
		pci_iounmap(pdev, dev->regs);
	if (dev->db)
		pci_iounmap(pdev, dev->db);
	pci_release_regions(pdev);
	return -ENOMEM;
}

static void sgh_unmap(struct sgh_dev *dev)
{
	pci_iounmap(dev->pdev, dev->db);
	pci_iounmap(dev->pdev, dev->regs);
	pci_release_regions(dev->pdev);
}

/* From a mapped function to one that executes commands. */
static int sgh_start(struct sgh_dev *dev)
{
	int ret;

	ret = sgh_hw_reset(dev);
	if (ret)
		return ret;
	sgh_hw_identity(dev);
	ret = sgh_hw_self_test(dev);
	if (ret)
		return ret;
	ret = sgh_admin_init(dev);
	if (ret)
		return ret;
	ret = sgh_eq_init(dev);
	if (ret)
		goto err_admin;
	ret = sgh_irq_init(dev);
	if (ret)
		goto err_eq;
	ret = sgh_irq_test(dev);
	if (ret)
		goto err_irq;
	ret = sgh_hw_enable(dev);
	if (ret)
		goto err_irq;
	ret = sgh_query_caps(dev);
	if (ret)
		goto err_reset;
	ret = sgh_ceq_init(dev);
	if (ret)
		goto err_reset;
	sgh_health_start(dev);
	return 0;

err_reset:
	sgh_hw_reset(dev);
err_irq:
	sgh_irq_fini(dev);
err_eq:
	sgh_eq_fini(dev);
err_admin:
	sgh_admin_fini(dev);
	return ret;
}

/* Once reset, nobody writes the rings; once the interrupts are gone, nobody reads them. */
static void sgh_stop(struct sgh_dev *dev)
{
	cancel_delayed_work_sync(&dev->health_work);
	sgh_fatal(dev, NULL);
	sgh_irq_fini(dev);
	sgh_ceq_fini(dev);
	sgh_eq_fini(dev);
	sgh_admin_fini(dev);
}

/* From a mapped function to an RDMA device, which comes when its network interface does. */
int sgh_up(struct sgh_dev *dev)
{
	int ret;

	sgh_init_state(dev);
	ret = sgh_start(dev);
	if (ret)
		goto err_state;
	ret = sgh_net_init(dev);
	if (ret)
		goto err_stop;
	mutex_lock(&dev->up_mutex);
	dev->up = true;
	mutex_unlock(&dev->up_mutex);
	dev->recovering = false;
	WRITE_ONCE(dev->failures, 0);
	return 0;

err_stop:
	sgh_stop(dev);
err_state:
	set_bit(SGH_DEAD, &dev->flags);
	sgh_fini_state(dev);
	return ret;
}

/* The reverse; does nothing if it is not up. */
void sgh_down(struct sgh_dev *dev)
{
	if (!dev->up)
		return;
	mutex_lock(&dev->up_mutex);
	dev->up = false;
	mutex_unlock(&dev->up_mutex);
	/*
	 * Unregisters the RDMA device, which destroys the objects of all processes and kernel
	 * consumers while the adapter still answers.
	 */
	sgh_net_fini(dev);
	sgh_stop(dev);
	sgh_fini_state(dev);
}

/*
 * Whether a lost adapter certainly accesses no memory.  The reset of sgh_fatal() did not arrive if
 * the function was unreachable; once it answers again, it goes on where it was.
 */
static bool sgh_silence(struct sgh_dev *dev)
{
	sgh_write(dev, SG_REG_CTRL, SG_CTRL_RESET);
	return sgh_read(dev, SG_REG_CTRL) != ~0u;
}

/* An attempt has failed.  Returns whether there will be another one. */
static bool sgh_try_later(struct sgh_dev *dev)
{
	WRITE_ONCE(dev->failures, dev->failures + 1);
	if (dev->recoveries == SGH_RECOVERIES)
		return false;
	sgh_recover(dev);
	return true;
}

/*
 * Takes a lost adapter down and up again.  Under devlink's lock, which excludes the other callers
 * of sgh_up() and sgh_down().
 */
int sgh_restart(struct sgh_dev *dev)
{
	int ret;

	if (dev->up) {
		/* The rings are freed under an unreachable adapter only when it is given up. */
		if (!sgh_silence(dev) && sgh_try_later(dev))
			return -EAGAIN;
		sgh_down(dev);
		dev->recovering = true;
	}
	ret = sgh_up(dev);
	if (ret) {
		dev_err(&dev->pdev->dev, "adapter does not come up again: %d\n", ret);
		sgh_try_later(dev);
	} else {
		dev_info(&dev->pdev->dev, "adapter is up again\n");
	}
	return ret;
}

static void sgh_recover_work(struct work_struct *work)
{
	sgh_health_report(container_of(to_delayed_work(work), struct sgh_dev, recover_work));
}

/* The adapter is lost, and its users have been told; or an attempt to recover it has failed. */
void sgh_recover(struct sgh_dev *dev)
{
	unsigned long delay = SGH_RECOVER_DELAY << 2 * min(READ_ONCE(dev->failures), 3U);

	spin_lock(&dev->recover_lock);
	if (dev->may_recover)
		schedule_delayed_work(&dev->recover_work, delay);
	spin_unlock(&dev->recover_lock);
}

/* Called when devlink is there.  Starts the recovery of an adapter that was lost before. */
static void sgh_allow_recovery(struct sgh_dev *dev)
{
	spin_lock(&dev->recover_lock);
	dev->may_recover = true;
	spin_unlock(&dev->recover_lock);
	if (sgh_dead(dev))
		sgh_recover(dev);
}

/* When this returns, no recovery is in progress and none can begin. */
static void sgh_no_recovery(struct sgh_dev *dev)
{
	spin_lock(&dev->recover_lock);
	dev->may_recover = false;
	spin_unlock(&dev->recover_lock);
	cancel_delayed_work_sync(&dev->recover_work);
}

static int sgh_suspend(struct device *device)
{
	struct sgh_dev *dev = dev_get_drvdata(device);

	cancel_delayed_work_sync(&dev->recover_work);
	devl_lock(dev->devlink);
	dev->resume = dev->up || dev->recovering;
	sgh_down(dev);
	devl_unlock(dev->devlink);
	pci_clear_master(dev->pdev);
	return 0;
}

static int sgh_resume(struct device *device)
{
	struct sgh_dev *dev = dev_get_drvdata(device);
	int ret = 0;

	pci_set_master(dev->pdev);
	devl_lock(dev->devlink);
	if (dev->resume)
		ret = sgh_up(dev);
	if (dev->resume && !ret)
		sgh_health_good(dev);
	devl_unlock(dev->devlink);
	return ret;
}

static DEFINE_SIMPLE_DEV_PM_OPS(sgh_pm_ops, sgh_suspend, sgh_resume);

static int sgh_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct sgh_dev *dev;
	int ret;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->pdev = pdev;
	INIT_DELAYED_WORK(&dev->recover_work, sgh_recover_work);
	spin_lock_init(&dev->recover_lock);
	mutex_init(&dev->up_mutex);
	dev->recover_since = jiffies;
	pci_set_drvdata(pdev, dev);

	ret = pci_enable_device(pdev);
	if (ret)
		goto err_free;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		goto err_disable;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	ret = sgh_map(dev);
	if (ret)
		goto err_disable;
	pci_set_master(pdev);
	ret = sgh_up(dev);
	if (ret)
		goto err_unmap;
	ret = sgh_devlink_init(dev);
	if (ret)
		goto err_down;
	pci_save_state(pdev); /* for sgh_slot_reset() */
	sgh_debugfs_init(dev);
	sgh_allow_recovery(dev);
	return 0;

err_down:
	sgh_down(dev);
err_unmap:
	pci_clear_master(pdev);
	sgh_unmap(dev);
err_disable:
	pci_disable_device(pdev);
err_free:
	kfree(dev);
	return ret;
}

static void sgh_remove(struct pci_dev *pdev)
{
	struct sgh_dev *dev = pci_get_drvdata(pdev);

	sgh_no_recovery(dev);
	sgh_debugfs_fini(dev);
	sgh_devlink_fini(dev);
	sgh_down(dev);
	pci_clear_master(pdev);
	sgh_unmap(dev);
	pci_disable_device(pdev);
	kfree(dev);
}

/* Power off or kexec: silence the adapter; memory stays as it is. */
static void sgh_shutdown(struct pci_dev *pdev)
{
	struct sgh_dev *dev = pci_get_drvdata(pdev);

	sgh_no_recovery(dev);
	sgh_fatal(dev, NULL);
	pci_clear_master(pdev);
}

/*
 * A reset through sysfs or VFIO removes all state.  Recovery waits for its end, however long
 * that takes, because registers do not answer until then.
 */
static void sgh_reset_prepare(struct pci_dev *pdev)
{
	struct sgh_dev *dev = pci_get_drvdata(pdev);

	sgh_no_recovery(dev);
	sgh_fatal(dev, "the function is being reset");
}

static void sgh_reset_done(struct pci_dev *pdev)
{
	sgh_allow_recovery(pci_get_drvdata(pdev));
}

/*
 * AER.  Errors that were corrected, and lost transactions on a link that still works, show in the
 * adapter's own state, if at all.  If the link is frozen, the adapter counts as lost; the following
 * reset of the slot leaves it as at power-on, and recovery begins.
 */
static pci_ers_result_t sgh_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct sgh_dev *dev = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	sgh_no_recovery(dev);
	sgh_fatal(dev, "the PCI link reports a fatal error");
	return state == pci_channel_io_perm_failure ? PCI_ERS_RESULT_DISCONNECT
						    : PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t sgh_slot_reset(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	pci_save_state(pdev); /* pci_restore_state() has consumed it */
	pci_set_master(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static void sgh_error_resume(struct pci_dev *pdev)
{
	sgh_allow_recovery(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers sgh_err_handler = {
	.error_detected = sgh_error_detected,
	.slot_reset = sgh_slot_reset,
	.resume = sgh_error_resume,
	.reset_prepare = sgh_reset_prepare,
	.reset_done = sgh_reset_done,
};

static const struct pci_device_id sgh_ids[] = { { PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) },
						{} };
MODULE_DEVICE_TABLE(pci, sgh_ids);

static struct pci_driver sgh_driver = {
	.name = SGH_NAME,
	.id_table = sgh_ids,
	.probe = sgh_probe,
	.remove = sgh_remove,
	.shutdown = sgh_shutdown,
	.err_handler = &sgh_err_handler,
	.driver.pm = pm_sleep_ptr(&sgh_pm_ops),
};
module_pci_driver(sgh_driver);

MODULE_DESCRIPTION("Staghorn iWARP RDMA adapter");
MODULE_AUTHOR("The Staghorn authors");
MODULE_LICENSE("Dual BSD/GPL");
