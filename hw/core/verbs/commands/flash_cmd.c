/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FLASH_*: the driver's access to the flash (flash/chip.c).  This file checks an update against
 * this particular adapter: a profile beyond the model's ranges is refused before it can run.
 */
#include "flash/chip.h"
#include "verbs/commands/admin_cmd.h"
#include "verbs/state/adapter_state.h"

static void slot_info(const struct sg_flash *f, unsigned slot, struct sg_flash_slot_info *out)
{
    const struct sg_slot_state *s = sg_flash_slot(f, slot);

    out->reason = s->reason;
    if (s->reason == SG_FLASH_GOOD) {
        memcpy(out->version, s->fw.version, sizeof(out->version));
        memcpy(out->profile, s->fw.profile.name, sizeof(out->profile));
        sg_put_le32(&out->sequence, s->sequence);
    }
}

enum sg_status sg_cmd_flash_info(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_flash *f = a->flash;
    struct sg_flash_info info = { 0 };

    (void)rsp;
    if (!f) {
        return SG_ENOTSUP;
    }
    info.running = sg_flash_running(f);
    info.stored = sg_flash_stored(f);
    sg_put_le32(&info.fw_size_max, SG_FW_SIZE_MAX);
    for (unsigned i = 0; i < SG_FLASH_SLOTS; i++) {
        slot_info(f, i, &info.slot[i]);
    }
    memcpy(info.part, sg_flash_identity(f)->part, sizeof(info.part));
    memcpy(info.serial, sg_flash_identity(f)->serial, sizeof(info.serial));
    return sg_admin_answer(a, cmd, &info, sizeof(info));
}

enum sg_status sg_cmd_flash_read(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_flash *c = cmd;
    uint32_t len = sg_get_le32(&c->len);
    const uint8_t *octets;

    (void)rsp;
    if (!a->flash) {
        return SG_ENOTSUP;
    }
    octets = sg_flash_octets(a->flash, sg_get_le32(&c->offset), len);
    if (!octets || len == 0 || len > SG_FLASH_CHUNK_MAX) {
        return SG_EINVAL;
    }
    return a->host.ops->dma_write(a->host.opaque, sg_get_le64(&c->addr), octets, len) ? SG_OK
                                                                                      : SG_EFAULT;
}

/* The medium is busy: the command is executed again when the host has us run. */
static enum sg_status wait_for_medium(struct sg_adapter *a)
{
    a->admin->unfinished = a->admin->waiting = true;
    return SG_OK;
}

enum sg_status sg_cmd_flash_write(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    static const enum sg_status status_of[] = {
        [SG_FLASH_OK] = SG_OK,
        [SG_FLASH_ORDER] = SG_ESTATE,
        [SG_FLASH_RANGE] = SG_EINVAL,
        [SG_FLASH_BROKEN] = SG_ENOMEM,
    };
    const struct sg_cmd_flash *c = cmd;
    uint32_t len = sg_get_le32(&c->len);
    uint8_t piece[SG_FLASH_CHUNK_MAX];
    enum sg_flash_result result;

    (void)rsp;
    if (!a->flash) {
        return SG_ENOTSUP;
    }
    if (len == 0 || len > sizeof(piece)) {
        return SG_EINVAL;
    }
    if (!sg_flash_waits(a->flash) &&
        !a->host.ops->dma_read(a->host.opaque, sg_get_le64(&c->addr), piece, len)) {
        return SG_EFAULT;
    }
    result = sg_flash_write(a->flash, sg_get_le32(&c->offset), piece, len);
    return result == SG_FLASH_LATER ? wait_for_medium(a) : status_of[result];
}

static bool none_is_set(void *opaque, const char *property)
{
    (void)opaque, (void)property;
    return false;
}

static bool in_range(void *opaque, const struct sg_firmware *fw)
{
    const struct sg_adapter *a = opaque;
    struct sg_adapter_config config = a->config;
    char buf[200];

    sg_profile_apply(&fw->profile, &config, none_is_set, NULL);
    return !sg_adapter_check_config(&config, buf, sizeof(buf));
}

enum sg_status sg_cmd_flash_commit(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_flash *c = cmd;
    enum sg_flash_reason reason;

    if (!a->flash) {
        return SG_ENOTSUP;
    }
    reason = sg_flash_commit(a->flash, sg_get_le32(&c->len), in_range, a);
    if (reason == SG_FLASH_PENDING) {
        return wait_for_medium(a);
    }
    sg_put_le32(&rsp->data[0], reason);
    sg_log(&a->host, SG_LOG_STATE, "flash: update: %s", sg_flash_reason_text(reason));
    return reason ? SG_EINVAL : SG_OK;
}
