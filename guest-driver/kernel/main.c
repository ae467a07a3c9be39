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
 * is taken down and up again, from recover_work: after the users of the old RDMA device were told,
 * there is a new and empty one.  An adapter that does not stay up is left alone.  Suspend and
 * resume do the same on purpose.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <net/devlink.h>

#include "staghorn.h"

static void sgh_init_state(struct sgh_dev *sg)
{
	xa_init(&sg->qps);
	xa_init(&sg->cqs);
	xa_init(&sg->srqs);
	xa_init(&sg->odps);
	xa_init_flags(&sg->counters, XA_FLAGS_ALLOC1);
	xa_init(&sg->listeners);
	xa_init(&sg->conns);
	ida_init(&sg->uars);
	mutex_init(&sg->id_mutex);
	mutex_init(&sg->odp_mutex);
	mutex_init(&sg->listen_mutex);
	mutex_init(&sg->addr_mutex);
	mutex_init(&sg->rdv_mutex);
	spin_lock_init(&sg->cm_lock);
	spin_lock_init(&sg->aeq_lock);
	spin_lock_init(&sg->net_lock);
	init_completion(&sg->test_irq);
	sg->flags = 0;
	sg->aeq_stalled = false;
	sg->fatal_told = false;
	sg->net_stopping = true; /* until sgh_net_init() */
}

static void sgh_fini_state(struct sgh_dev *sg)
{
	WARN_ON(!xa_empty(&sg->qps) || !xa_empty(&sg->cqs) || !xa_empty(&sg->srqs) ||
		!xa_empty(&sg->listeners));
	xa_destroy(&sg->qps);
	xa_destroy(&sg->cqs);
	xa_destroy(&sg->srqs);
	xa_destroy(&sg->odps);
	xa_destroy(&sg->counters);
	xa_destroy(&sg->listeners);
	xa_destroy(&sg->conns);
	ida_destroy(&sg->uars);
}

static int sgh_map(struct sgh_dev *sg)
{
	struct pci_dev *pdev = sg->pdev;
	int ret;

	if (pci_resource_len(pdev, SG_BAR_REGS) < SG_REGS_SIZE ||
	    pci_resource_len(pdev, SG_BAR_DOORBELL) < SG_UAR_SIZE)
		return dev_err_probe(&pdev->dev, -ENODEV, "BARs are missing or too small\n");

	ret = pci_request_regions(pdev, SGH_NAME);
	if (ret)
		return ret;
	sg->regs = pci_iomap(pdev, SG_BAR_REGS, SG_REGS_SIZE);
	sg->db = pci_iomap_range(pdev, SG_BAR_DOORBELL, 0, SG_UAR_SIZE);
	if (sg->regs && sg->db)
		return 0;

	if (sg->regs)
		pci_iounmap(pdev, sg->regs);
	if (sg->db)
		pci_iounmap(pdev, sg->db);
	pci_release_regions(pdev);
	return -ENOMEM;
}

static void sgh_unmap(struct sgh_dev *sg)
{
	pci_iounmap(sg->pdev, sg->db);
	pci_iounmap(sg->pdev, sg->regs);
	pci_release_regions(sg->pdev);
}

/* From a mapped function to one that executes commands. */
static int sgh_start(struct sgh_dev *sg)
{
	int ret;

	ret = sgh_hw_reset(sg);
	if (ret)
		return ret;
	sgh_hw_identity(sg);
	ret = sgh_hw_self_test(sg);
	if (ret)
		return ret;
	ret = sgh_admin_init(sg);
	if (ret)
		return ret;
	ret = sgh_eq_init(sg);
	if (ret)
		goto err_admin;
	ret = sgh_irq_init(sg);
	if (ret)
		goto err_eq;
	ret = sgh_irq_test(sg);
	if (ret)
		goto err_irq;
	ret = sgh_hw_enable(sg);
	if (ret)
		goto err_irq;
	ret = sgh_query_caps(sg);
	if (ret)
		goto err_reset;
	ret = sgh_ceq_init(sg);
	if (ret)
		goto err_reset;
	sgh_health_start(sg);
	return 0;

err_reset:
	sgh_hw_reset(sg);
err_irq:
	sgh_irq_fini(sg);
err_eq:
	sgh_eq_fini(sg);
err_admin:
	sgh_admin_fini(sg);
	return ret;
}

/* Once reset, nobody writes the rings; once the interrupts are gone, nobody reads them. */
static void sgh_stop(struct sgh_dev *sg)
{
	cancel_delayed_work_sync(&sg->health_work);
	sgh_fatal(sg, NULL);
	sgh_irq_fini(sg);
	sgh_ceq_fini(sg);
	sgh_eq_fini(sg);
	sgh_admin_fini(sg);
}

/* From a mapped function to an RDMA device, which comes when its network interface does. */
int sgh_up(struct sgh_dev *sg)
{
	int ret;

	sgh_init_state(sg);
	ret = sgh_start(sg);
	if (ret)
		goto err_state;
	ret = sgh_net_init(sg);
	if (ret)
		goto err_stop;
	sg->up = true;
	return 0;

err_stop:
	sgh_stop(sg);
err_state:
	set_bit(SGH_DEAD, &sg->flags);
	sgh_fini_state(sg);
	return ret;
}

/* The reverse; does nothing if it is not up. */
void sgh_down(struct sgh_dev *sg)
{
	if (!sg->up)
		return;
	sg->up = false;
	/*
	 * Unregisters the RDMA device, which destroys the objects of all processes and kernel
	 * consumers while the adapter still answers.
	 */
	sgh_net_fini(sg);
	sgh_stop(sg);
	sgh_fini_state(sg);
}

/* Under devlink's lock, which excludes the other callers of sgh_up() and sgh_down(). */
static void sgh_recover_work(struct work_struct *work)
{
	struct sgh_dev *sg = container_of(to_delayed_work(work), struct sgh_dev, recover_work);
	int ret;

	devl_lock(sg->devlink);
	if (sg->up && sgh_dead(sg)) {
		sgh_down(sg);
		ret = sgh_up(sg);
		if (ret)
			dev_err(&sg->pdev->dev, "adapter does not come up again: %d\n", ret);
		else
			dev_info(&sg->pdev->dev, "adapter is up again\n");
	}
	devl_unlock(sg->devlink);
}

/* The adapter is lost, and its users have been told. */
void sgh_recover(struct sgh_dev *sg)
{
	spin_lock(&sg->recover_lock);
	if (time_after(jiffies, sg->recover_since + SGH_RECOVER_PERIOD)) {
		sg->recover_since = jiffies;
		sg->recoveries = 0;
	}
	if (sg->may_recover && sg->recoveries < SGH_RECOVERIES &&
	    schedule_delayed_work(&sg->recover_work, SGH_RECOVER_DELAY))
		sg->recoveries++;
	spin_unlock(&sg->recover_lock);
}

/* Called when devlink is there.  Starts the recovery of an adapter that was lost before. */
static void sgh_allow_recovery(struct sgh_dev *sg)
{
	spin_lock(&sg->recover_lock);
	sg->may_recover = true;
	spin_unlock(&sg->recover_lock);
	if (sgh_dead(sg))
		sgh_recover(sg);
}

/* When this returns, no recovery is in progress and none can begin. */
static void sgh_no_recovery(struct sgh_dev *sg)
{
	spin_lock(&sg->recover_lock);
	sg->may_recover = false;
	spin_unlock(&sg->recover_lock);
	cancel_delayed_work_sync(&sg->recover_work);
}

static int sgh_suspend(struct device *dev)
{
	struct sgh_dev *sg = dev_get_drvdata(dev);

	cancel_delayed_work_sync(&sg->recover_work);
	devl_lock(sg->devlink);
	sg->resume = sg->up;
	sgh_down(sg);
	devl_unlock(sg->devlink);
	pci_clear_master(sg->pdev);
	return 0;
}

static int sgh_resume(struct device *dev)
{
	struct sgh_dev *sg = dev_get_drvdata(dev);
	int ret = 0;

	pci_set_master(sg->pdev);
	devl_lock(sg->devlink);
	if (sg->resume)
		ret = sgh_up(sg);
	devl_unlock(sg->devlink);
	return ret;
}

static DEFINE_SIMPLE_DEV_PM_OPS(sgh_pm_ops, sgh_suspend, sgh_resume);

static int sgh_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct sgh_dev *sg;
	int ret;

	sg = kzalloc(sizeof(*sg), GFP_KERNEL);
	if (!sg)
		return -ENOMEM;
	sg->pdev = pdev;
	INIT_DELAYED_WORK(&sg->recover_work, sgh_recover_work);
	spin_lock_init(&sg->recover_lock);
	sg->recover_since = jiffies;
	pci_set_drvdata(pdev, sg);

	ret = pci_enable_device(pdev);
	if (ret)
		goto err_free;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		goto err_disable;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	ret = sgh_map(sg);
	if (ret)
		goto err_disable;
	pci_set_master(pdev);
	ret = sgh_up(sg);
	if (ret)
		goto err_unmap;
	ret = sgh_devlink_init(sg);
	if (ret)
		goto err_down;
	pci_save_state(pdev); /* for sgh_slot_reset() */
	sgh_allow_recovery(sg);
	return 0;

err_down:
	sgh_down(sg);
err_unmap:
	pci_clear_master(pdev);
	sgh_unmap(sg);
err_disable:
	pci_disable_device(pdev);
err_free:
	kfree(sg);
	return ret;
}

static void sgh_remove(struct pci_dev *pdev)
{
	struct sgh_dev *sg = pci_get_drvdata(pdev);

	sgh_no_recovery(sg);
	sgh_devlink_fini(sg);
	sgh_down(sg);
	pci_clear_master(pdev);
	sgh_unmap(sg);
	pci_disable_device(pdev);
	kfree(sg);
}

/* Power off or kexec: silence the adapter; memory stays as it is. */
static void sgh_shutdown(struct pci_dev *pdev)
{
	struct sgh_dev *sg = pci_get_drvdata(pdev);

	sgh_no_recovery(sg);
	sgh_fatal(sg, NULL);
	pci_clear_master(pdev);
}

/*
 * A reset through sysfs or VFIO removes all state.  Recovery waits for its end, however long
 * that takes, because registers do not answer until then.
 */
static void sgh_reset_prepare(struct pci_dev *pdev)
{
	struct sgh_dev *sg = pci_get_drvdata(pdev);

	sgh_no_recovery(sg);
	sgh_fatal(sg, "the function is being reset");
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
	struct sgh_dev *sg = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	sgh_no_recovery(sg);
	sgh_fatal(sg, "the PCI link reports a fatal error");
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

static const struct pci_device_id sgh_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) },
	{ }
};
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
