// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * devlink: information about adapter and firmware, firmware updates, and reload; health.c has the
 * health reporter.
 *
 * An update goes to the slot of the flash that is not running, in pieces, and becomes valid once
 * the adapter has checked all of it (SG_ADMIN_FLASH_COMMIT); until then, whatever happens, the old
 * firmware boots.  The new one runs after a reset of the function: reload, or the next driver load.
 */
#include <linux/dma-mapping.h>
#include <linux/firmware.h>
#include <net/devlink.h>

#include <staghorn/flash.h>

#include "dev.h"

static const char *const sgh_flash_reasons[SG_FLASH_REASONS] = {
	[SG_FLASH_GOOD] = "no reason given",
	[SG_FLASH_SHORT] = "the image ends too early",
	[SG_FLASH_NOT_OURS] = "the image is not firmware of this adapter",
	[SG_FLASH_FORMAT_NEW] = "the image has a format that is not known",
	[SG_FLASH_LENGTH] = "a length or an offset in the image is impossible",
	[SG_FLASH_CHECKSUM] = "the image's checksum is wrong",
	[SG_FLASH_DEVICE] = "the image is for another adapter",
	[SG_FLASH_TEXT] = "the image's version or name is malformed",
	[SG_FLASH_ROM] = "the image's expansion ROM is malformed",
	[SG_FLASH_PROFILE] = "a value of the image's profile is out of range",
	[SG_FLASH_RESERVED] = "a reserved field of the image is not zero",
	[SG_FLASH_MEDIUM] = "the flash does not take it",
	[SG_FLASH_EMPTY] = "the image is empty",
};

static struct sgh_dev *sgh_of_devlink(struct devlink *devlink)
{
	return *(struct sgh_dev **)devlink_priv(devlink);
}

static int sgh_put_slot(struct devlink_info_req *req, const struct sg_flash_slot_info *slot,
			bool running)
{
	int (*put)(struct devlink_info_req *req, const char *name, const char *value) =
		running ? devlink_info_version_running_put : devlink_info_version_stored_put;
	char text[sizeof(slot->version) + 1] = "";
	int ret;

	memcpy(text, slot->version, sizeof(slot->version));
	ret = put(req, DEVLINK_INFO_VERSION_GENERIC_FW, text);
	if (ret)
		return ret;
	memcpy(text, slot->profile, sizeof(slot->profile));
	return put(req, "fw.profile", text);
}

static int sgh_devlink_info(struct devlink *devlink, struct devlink_info_req *req,
			    struct netlink_ext_ack *extack)
{
	struct sgh_dev *dev = sgh_of_devlink(devlink);
	struct sg_flash_info info;
	char text[sizeof(info.serial) + 1] = "";
	int ret;

	ret = sgh_admin_query(dev, SG_ADMIN_FLASH_INFO, 0, &info, sizeof(info));
	if (ret == -EOPNOTSUPP) /* no flash: the model's built-in firmware, which cannot change */
		return devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW,
							dev->caps.fw_version);
	if (ret)
		return ret;
	if (info.running >= ARRAY_SIZE(info.slot) || info.stored >= ARRAY_SIZE(info.slot))
		return -EIO;

	memcpy(text, info.serial, sizeof(info.serial));
	ret = *text ? devlink_info_serial_number_put(req, text) : 0;
	if (ret)
		return ret;
	memset(text, 0, sizeof(text));
	memcpy(text, info.part, sizeof(info.part));
	ret = *text ? devlink_info_version_fixed_put(req, DEVLINK_INFO_VERSION_GENERIC_BOARD_ID,
						     text)
		    : 0;
	if (ret)
		return ret;
	ret = sgh_put_slot(req, &info.slot[info.running], true);
	if (ret)
		return ret;
	return sgh_put_slot(req, &info.slot[info.stored], false);
}

static int sgh_flash_cmd(struct sgh_dev *dev, u8 opcode, dma_addr_t addr, u32 len, u32 offset,
			 struct sg_admin_rsp *rsp)
{
	struct sg_cmd_flash cmd = {
		.addr = cpu_to_le64(addr),
		.len = cpu_to_le32(len),
		.offset = cpu_to_le32(offset),
	};

	return sgh_admin(dev, opcode, &cmd, sizeof(cmd), rsp);
}

static int sgh_flash_pieces(struct devlink *devlink, const struct firmware *fw,
			    struct netlink_ext_ack *extack)
{
	struct sgh_dev *dev = sgh_of_devlink(devlink);
	struct device *device = &dev->pdev->dev;
	dma_addr_t dma;
	size_t done, n;
	int ret = 0;
	u8 *piece;

	piece = dma_alloc_coherent(device, SG_FLASH_CHUNK_MAX, &dma, GFP_KERNEL);
	if (!piece)
		return -ENOMEM;
	for (done = 0; done < fw->size && !ret; done += n) {
		n = min_t(size_t, fw->size - done, SG_FLASH_CHUNK_MAX);
		memcpy(piece, fw->data + done, n);
		ret = sgh_flash_cmd(dev, SG_ADMIN_FLASH_WRITE, dma, n, done, NULL);
		devlink_flash_update_status_notify(devlink, "Flashing", NULL, done + n, fw->size);
	}
	dma_free_coherent(device, SG_FLASH_CHUNK_MAX, piece, dma);
	if (ret == -EOPNOTSUPP)
		NL_SET_ERR_MSG_MOD(extack, "the adapter has no flash image to update");
	else if (ret)
		NL_SET_ERR_MSG_MOD(extack, "the flash cannot be written");
	return ret;
}

static int sgh_devlink_flash(struct devlink *devlink, struct devlink_flash_update_params *params,
			     struct netlink_ext_ack *extack)
{
	struct sgh_dev *dev = sgh_of_devlink(devlink);
	const struct firmware *fw = params->fw;
	struct sg_admin_rsp rsp = {};
	u32 reason;
	int ret;

	if (fw->size == 0 || fw->size > SG_FW_SIZE_MAX) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "refused: %zu octets, must be 1 to %u", fw->size,
				       SG_FW_SIZE_MAX);
		return -EINVAL;
	}
	devlink_flash_update_status_notify(devlink, "Preparing to flash", NULL, 0, 0);
	ret = sgh_flash_pieces(devlink, fw, extack);
	if (ret)
		return ret;
	ret = sgh_flash_cmd(dev, SG_ADMIN_FLASH_COMMIT, 0, fw->size, 0, &rsp);
	if (!ret) {
		devlink_flash_update_status_notify(devlink, "Flashing done", NULL, 0, 0);
		return 0;
	}
	reason = le32_to_cpu(rsp.data[0]);
	NL_SET_ERR_MSG_FMT_MOD(extack, "refused: %s",
			       sgh_flash_reasons[reason < SG_FLASH_REASONS ? reason : 0]);
	return ret;
}

static int sgh_devlink_reload_down(struct devlink *devlink, bool netns_change,
				   enum devlink_reload_action action,
				   enum devlink_reload_limit limit, struct netlink_ext_ack *extack)
{
	if (netns_change) {
		NL_SET_ERR_MSG_MOD(extack, "the adapter stays in its network namespace");
		return -EOPNOTSUPP;
	}
	sgh_down(sgh_of_devlink(devlink));
	return 0;
}

static int sgh_devlink_reload_up(struct devlink *devlink, enum devlink_reload_action action,
				 enum devlink_reload_limit limit, u32 *actions_performed,
				 struct netlink_ext_ack *extack)
{
	int ret = sgh_up(sgh_of_devlink(devlink));

	if (ret)
		NL_SET_ERR_MSG_MOD(extack, "the adapter does not come up again");
	else
		sgh_health_good(sgh_of_devlink(devlink));
	*actions_performed =
		BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT) | BIT(DEVLINK_RELOAD_ACTION_FW_ACTIVATE);
	return ret;
}

static const struct devlink_ops sgh_devlink_ops = {
	.info_get = sgh_devlink_info,
	.flash_update = sgh_devlink_flash,
	.reload_actions =
		BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT) | BIT(DEVLINK_RELOAD_ACTION_FW_ACTIVATE),
	.reload_down = sgh_devlink_reload_down,
	.reload_up = sgh_devlink_reload_up,
};

/* The adapter is up, and every later call through devlink finds it up. */
int sgh_devlink_init(struct sgh_dev *dev)
{
	struct devlink *devlink;
	int ret;

	devlink = devlink_alloc(&sgh_devlink_ops, sizeof(dev), &dev->pdev->dev);
	if (!devlink)
		return -ENOMEM;
	*(struct sgh_dev **)devlink_priv(devlink) = dev;
	dev->devlink = devlink;
	ret = sgh_health_init(dev);
	if (ret) {
		devlink_free(devlink);
		return ret;
	}
	devlink_register(devlink);
	return 0;
}

/* When this returns, no devlink call is in progress and none can begin. */
void sgh_devlink_fini(struct sgh_dev *dev)
{
	devlink_unregister(dev->devlink);
	sgh_health_fini(dev);
	devlink_free(dev->devlink);
}
