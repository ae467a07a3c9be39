// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Commands that fail on demand, by the kernel's framework for fault injection.  It is compiled only
 * if the kernel has that (CONFIG_FAULT_INJECTION_DEBUG_FS).
 *
 * Each adapter has a folder in debugfs, staghorn-ADDRESS/fail_admin.  Besides the framework's own
 * files (probability, interval, times, ...; Documentation/fault-injection in Linux) it has these:
 *
 *   error	EIO (5): the command fails, and the adapter has not seen it;
 *		ETIMEDOUT (110): it has no answer, so the adapter counts as lost
 *   opcode	only this opcode (enum sg_admin_opcode).  The default is all but those that take
 *		something away: a caller cannot do without them, so what fails there is kept for
 *		ever.
 */
#include <linux/debugfs.h>
#include <linux/ratelimit.h>

#include "dev.h"

#define SGH_FAIL_DEFAULT (~0u)

static bool sgh_takes_away(u8 opcode)
{
	switch (opcode) {
	case SG_ADMIN_DESTROY_EQ:
	case SG_ADMIN_DESTROY_PD:
	case SG_ADMIN_DEREG_MR:
	case SG_ADMIN_DEALLOC_MW:
	case SG_ADMIN_MAP_PAGES: /* also gives pages back to the kernel */
	case SG_ADMIN_DESTROY_CQ:
	case SG_ADMIN_DESTROY_QP:
	case SG_ADMIN_DESTROY_SRQ:
	case SG_ADMIN_UNLISTEN:
		return true;
	default:
		return false;
	}
}

/* 0: the command is to be executed.  Process context. */
int sgh_fail_admin(struct sgh_dev *dev, u8 opcode)
{
	struct sgh_faults *f = &dev->faults;
	u32 only = READ_ONCE(f->opcode);

	if (!READ_ONCE(f->dir) || sgh_dead(dev))
		return 0;
	if (only == SGH_FAIL_DEFAULT ? sgh_takes_away(opcode) : only != opcode)
		return 0;
	if (!should_fail(&f->attr, 1))
		return 0;
	if (READ_ONCE(f->error) == ETIMEDOUT)
		sgh_fatal(dev, "an admin command has no answer");
	return -EIO;
}

/* Without debugfs there are no faults, and the driver works all the same. */
void sgh_debugfs_init(struct sgh_dev *dev)
{
	static const struct fault_attr initial = FAULT_ATTR_INITIALIZER;
	struct sgh_faults *f = &dev->faults;
	struct dentry *dir, *attr;
	char name[64];

	f->attr = initial;
	ratelimit_state_init(&f->attr.ratelimit_state, 0, DEFAULT_RATELIMIT_BURST);
	f->error = EIO;
	f->opcode = SGH_FAIL_DEFAULT;
	snprintf(name, sizeof(name), SGH_NAME "-%s", pci_name(dev->pdev));
	dir = debugfs_create_dir(name, NULL);
	if (IS_ERR(dir))
		return;
	attr = fault_create_debugfs_attr("fail_admin", dir, &f->attr);
	if (IS_ERR(attr)) {
		debugfs_remove_recursive(dir);
		return;
	}
	debugfs_create_u32("error", 0600, attr, &f->error);
	debugfs_create_u32("opcode", 0600, attr, &f->opcode);
	WRITE_ONCE(f->dir, dir);
}

void sgh_debugfs_fini(struct sgh_dev *dev)
{
	struct dentry *dir = dev->faults.dir;

	WRITE_ONCE(dev->faults.dir, NULL);
	debugfs_remove_recursive(dir);
}
