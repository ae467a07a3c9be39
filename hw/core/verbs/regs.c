/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control registers: one table row per register, with its kind of access and its functions.
 *
 * Registers are 32 bits wide; an access of 64 bits is two accesses, low half first.  Accesses to
 * holes, and writes of read-only registers, are guest errors without effect.  Ring registers can
 * be written only while CTRL.ENABLE is clear.
 */
#include "verbs/adapter.h"
#include "verbs/adapter_impl.h"
#include "verbs/commands/admin_cmd.h"
#include "verbs/events/eq.h"

enum reg_kind {
    REG_HOLE,
    REG_RO,
    REG_RW,
    REG_SETUP, /* RW while not enabled */
    REG_WO,
};

struct reg_row {
    uint8_t kind;                                        /* enum reg_kind */
    uint32_t (*read)(struct sg_adapter *a);              /* NULL: the stored value */
    void (*write)(struct sg_adapter *a, uint32_t value); /* NULL: store */
    uint32_t value;                                      /* RO without function */
};

static const struct sg_object the_adapter = { .kind = SG_OBJECT_ADAPTER };

static uint32_t *reg(struct sg_adapter *a, uint32_t offset)
{
    return &a->regs[offset / 4];
}

static uint64_t reg64(struct sg_adapter *a, uint32_t offset)
{
    return *reg(a, offset) | (uint64_t)*reg(a, offset + 4) << 32;
}

static uint32_t read_status(struct sg_adapter *a)
{
    return a->status;
}
static uint32_t read_fatal(struct sg_adapter *a)
{
    return a->fatal;
}
static uint32_t read_vectors(struct sg_adapter *a)
{
    return a->config.vectors;
}
static uint32_t read_mac_lo(struct sg_adapter *a)
{
    return sg_get_le32(a->config.mac);
}
static uint32_t read_mac_hi(struct sg_adapter *a)
{
    return sg_get_le16(a->config.mac + 4);
}
static uint32_t read_guid_lo(struct sg_adapter *a)
{
    return (uint32_t)a->config.guid;
}
static uint32_t read_guid_hi(struct sg_adapter *a)
{
    return a->config.guid >> 32;
}
static uint32_t read_speed(struct sg_adapter *a)
{
    return a->config.link_speed;
}
static uint32_t read_mtu(struct sg_adapter *a)
{
    return a->config.link_mtu;
}
static uint32_t read_fw_version(struct sg_adapter *a)
{
    return a->config.fw_version_word;
}
static uint32_t read_scratch(struct sg_adapter *a)
{
    return ~*reg(a, SG_REG_TEST_SCRATCH);
}

static struct sg_pm_cut last_cut(struct sg_adapter *a)
{
    struct sg_pm_cut cut = { 0 };

    if (!a->host.ops->pm_last_cut || !a->host.ops->pm_last_cut(a->host.opaque, &cut)) {
        memset(&cut, 0, sizeof(cut));
    }
    return cut;
}

static uint32_t read_cuts(struct sg_adapter *a)
{
    return last_cut(a).cuts;
}
static uint32_t read_kept(struct sg_adapter *a)
{
    return last_cut(a).kept;
}
static uint32_t read_lost(struct sg_adapter *a)
{
    return last_cut(a).lost;
}

static void write_ctrl(struct sg_adapter *a, uint32_t value)
{
    bool enabled = *reg(a, SG_REG_CTRL) & SG_CTRL_ENABLE;

    if (sg_checking(a) && (value & SG_CTRL_RESET || (enabled && !(value & SG_CTRL_ENABLE)))) {
        sg_check_left(a);
    }
    if (value & SG_CTRL_RESET) {
        sg_adapter_reset(a);
        a->own_reset = true;
        return;
    }
    if (value & ~SG_CTRL_ENABLE) {
        sg_guest_error(a, SG_RULE_REG_BITS, the_adapter, "CTRL: unknown bits 0x%x",
                       value & ~SG_CTRL_ENABLE);
    }
    *reg(a, SG_REG_CTRL) = value & SG_CTRL_ENABLE;
    if (!enabled && (value & SG_CTRL_ENABLE)) {
        sg_adapter_enable(a);
    } else if (enabled && !(value & SG_CTRL_ENABLE)) {
        sg_adapter_disable(a);
        a->own_reset = true;
    }
}

static void write_test_irq(struct sg_adapter *a, uint32_t vector)
{
    if (vector < a->config.vectors) {
        sg_adapter_raise(a, vector);
    } else {
        sg_guest_error(a, SG_RULE_REG_VECTOR, the_adapter, "TEST_IRQ: vector %u of %u", vector,
                       a->config.vectors);
    }
}

/* Processes the buffer in pieces, so that a guest cannot cause a large allocation. */
static enum sg_status test_dma(struct sg_adapter *a, uint32_t cmd)
{
    uint64_t addr = reg64(a, SG_REG_TEST_DMA_LO);
    uint32_t len = *reg(a, SG_REG_TEST_DMA_LEN), done, n, i;
    uint8_t buf[1024];

    if (len == 0 || len > SG_TEST_DMA_MAX || addr + len < addr ||
        (cmd != SG_TEST_DMA_FILL && cmd != SG_TEST_DMA_INVERT)) {
        return SG_EINVAL;
    }
    for (done = 0; done < len; done += n) {
        n = SG_MIN(len - done, (uint32_t)sizeof(buf));
        if (cmd == SG_TEST_DMA_INVERT &&
            !a->host.ops->dma_read(a->host.opaque, addr + done, buf, n)) {
            return SG_EFAULT;
        }
        for (i = 0; i < n; i++) {
            buf[i] = cmd == SG_TEST_DMA_FILL ? (uint8_t)(done + i) : (uint8_t)~buf[i];
        }
        if (!a->host.ops->dma_write(a->host.opaque, addr + done, buf, n)) {
            return SG_EFAULT;
        }
    }
    return SG_OK;
}

static void write_test_dma(struct sg_adapter *a, uint32_t cmd)
{
    *reg(a, SG_REG_TEST_DMA_STATUS) = test_dma(a, cmd);
}

static const struct reg_row rows[0x100 / 4] = {
#define REG(offset) [(offset) / 4]
    REG(SG_REG_MAGIC) = { REG_RO, .value = SG_MAGIC },
    REG(SG_REG_VERSION) = { REG_RO, .value = SG_VERSION },
    REG(SG_REG_CTRL) = { REG_RW, .write = write_ctrl },
    REG(SG_REG_STATUS) = { REG_RO, read_status },
    REG(SG_REG_FATAL) = { REG_RO, read_fatal },
    REG(SG_REG_VECTORS) = { REG_RO, read_vectors },
    REG(SG_REG_MAC_LO) = { REG_RO, read_mac_lo },
    REG(SG_REG_MAC_HI) = { REG_RO, read_mac_hi },
    REG(SG_REG_GUID_LO) = { REG_RO, read_guid_lo },
    REG(SG_REG_GUID_HI) = { REG_RO, read_guid_hi },
    REG(SG_REG_LINK_SPEED) = { REG_RO, read_speed },
    REG(SG_REG_LINK_MTU) = { REG_RO, read_mtu },
    REG(SG_REG_FW_VERSION) = { REG_RO, read_fw_version },
    REG(SG_REG_POWER_CUTS) = { REG_RO, read_cuts },
    REG(SG_REG_POWER_KEPT) = { REG_RO, read_kept },
    REG(SG_REG_POWER_LOST) = { REG_RO, read_lost },
    REG(SG_REG_TEST_SCRATCH) = { REG_RW, read_scratch },
    REG(SG_REG_TEST_IRQ) = { REG_WO, .write = write_test_irq },
    REG(SG_REG_TEST_DMA_LO) = { REG_RW },
    REG(SG_REG_TEST_DMA_HI) = { REG_RW },
    REG(SG_REG_TEST_DMA_LEN) = { REG_RW },
    REG(SG_REG_TEST_DMA_CMD) = { REG_WO, .write = write_test_dma },
    REG(SG_REG_TEST_DMA_STATUS) = { REG_RO },
    REG(SG_REG_ASQ_BASE_LO) = { REG_SETUP },
    REG(SG_REG_ASQ_BASE_HI) = { REG_SETUP },
    REG(SG_REG_ACQ_BASE_LO) = { REG_SETUP },
    REG(SG_REG_ACQ_BASE_HI) = { REG_SETUP },
    REG(SG_REG_ADMIN_SIZE) = { REG_SETUP },
    REG(SG_REG_ADMIN_DB) = { REG_WO, .write = sg_admin_doorbell },
    REG(SG_REG_ADMIN_CI) = { REG_WO, .write = sg_admin_consumed },
    REG(SG_REG_AEQ_BASE_LO) = { REG_SETUP },
    REG(SG_REG_AEQ_BASE_HI) = { REG_SETUP },
    REG(SG_REG_AEQ_SIZE) = { REG_SETUP },
#undef REG
};

static uint32_t read32(struct sg_adapter *a, uint32_t offset)
{
    const struct reg_row *row = offset < sizeof(a->regs) ? &rows[offset / 4] : NULL;

    if (!row || row->kind == REG_HOLE || row->kind == REG_WO) {
        sg_guest_error(a, SG_RULE_REG_UNKNOWN, the_adapter,
                       "read of register 0x%04x, which cannot be read", offset);
        return 0;
    }
    if (row->read) {
        return row->read(a);
    }
    return row->value ? row->value : *reg(a, offset);
}

static bool is_eq_doorbell(uint32_t offset)
{
    return offset >= SG_REG_EQ_DB && offset < SG_REG_EQ_DB + 4 * SG_EQ_COUNT;
}

static void write32(struct sg_adapter *a, uint32_t offset, uint32_t value)
{
    const struct reg_row *row = offset < sizeof(a->regs) ? &rows[offset / 4] : NULL;

    if (is_eq_doorbell(offset)) {
        if (sg_eq_doorbell(a, (offset - SG_REG_EQ_DB) / 4, value) && offset == SG_REG_EQ_DB) {
            sg_admin_armed(a);
        }
        return;
    }
    if (!row || row->kind == REG_HOLE || row->kind == REG_RO) {
        sg_guest_error(a, SG_RULE_REG_UNKNOWN, the_adapter,
                       "write of 0x%x to register 0x%04x, which cannot be written", value, offset);
        return;
    }
    sg_checked(a, the_adapter, SG_DID_REGISTER, offset, value);
    if (row->kind == REG_SETUP && (*reg(a, SG_REG_CTRL) & SG_CTRL_ENABLE)) {
        sg_guest_error(a, SG_RULE_REG_SETUP, the_adapter,
                       "write to ring register 0x%04x while enabled", offset);
        return;
    }
    if (row->write) {
        row->write(a, value);
    } else {
        *reg(a, offset) = value;
    }
}

static bool access_ok(struct sg_adapter *a, uint32_t offset, unsigned size)
{
    if (a->running) {
        /* Our own DMA, which the guest aimed at our registers. */
        sg_guest_error(a, SG_RULE_DMA_SELF, the_adapter,
                       "access to register 0x%x from within a turn", offset);
        return false;
    }
    if ((size == 4 || size == 8) && sg_is_aligned(offset, size) && offset < SG_REGS_SIZE) {
        return true;
    }
    sg_guest_error(a, SG_RULE_REG_WIDTH, the_adapter, "access of %u octets to register 0x%x", size,
                   offset);
    return false;
}

/* A fault: nobody answers, and the bus makes it ones. */
static SG_COLD bool reads_ones(struct sg_adapter *a, uint32_t offset)
{
    return sg_faults_at(a->faults, SG_POINT_REGISTERS, offset, sg_adapter_now(a)).effect ==
           SG_EFFECT_ONES;
}

enum sg_fatal sg_adapter_fatal_error(const struct sg_adapter *a)
{
    return (enum sg_fatal)a->fatal;
}

uint64_t sg_adapter_reg_read(struct sg_adapter *a, uint32_t offset, unsigned size)
{
    uint64_t value;

    if (sg_faulty(a) && reads_ones(a, offset)) {
        return size == 8 ? UINT64_MAX : (1ull << 8 * size) - 1;
    }
    if (!access_ok(a, offset, size)) {
        return 0;
    }
    value = read32(a, offset);
    return size == 8 ? value | (uint64_t)read32(a, offset + 4) << 32 : value;
}

void sg_adapter_reg_write(struct sg_adapter *a, uint32_t offset, uint64_t value, unsigned size)
{
    if (sg_adapter_is_unreachable(a) || !access_ok(a, offset, size)) {
        return;
    }
    write32(a, offset, (uint32_t)value);
    if (size == 8) {
        write32(a, offset + 4, value >> 32);
    }
}

static bool ring_base_ok(uint64_t base)
{
    return base && sg_is_aligned(base, SG_PAGE_SIZE);
}

void sg_adapter_enable(struct sg_adapter *a)
{
    uint64_t asq = reg64(a, SG_REG_ASQ_BASE_LO), acq = reg64(a, SG_REG_ACQ_BASE_LO);
    uint64_t aeq = reg64(a, SG_REG_AEQ_BASE_LO);
    uint32_t admin_size = *reg(a, SG_REG_ADMIN_SIZE), aeq_size = *reg(a, SG_REG_AEQ_SIZE);

    if (!ring_base_ok(asq) || !ring_base_ok(acq) || !ring_base_ok(aeq) || !sg_is_pow2(admin_size) ||
        admin_size < SG_ADMIN_SIZE_MIN || admin_size > SG_ADMIN_SIZE_MAX || !sg_is_pow2(aeq_size) ||
        aeq_size < SG_AEQ_SIZE_MIN || aeq_size > SG_EQ_SIZE_MAX) {
        sg_guest_error(a, SG_RULE_REG_ENABLE, the_adapter, "enabled with unusable ring registers");
        sg_adapter_fatal(a, SG_FATAL_BAD_SETUP);
        return;
    }
    memset(a->admin, 0, sizeof(*a->admin));
    sg_ring_init(&a->admin->sq, asq, admin_size, SG_ADMIN_CMD_SIZE);
    sg_ring_init(&a->admin->cq, acq, admin_size, SG_ADMIN_RSP_SIZE);
    sg_eq_make(a, 0, aeq, aeq_size, 0);
    if (sg_checking(a)) {
        sg_check_enabled(a);
    }
    a->status |= SG_STATUS_READY;
    sg_log(&a->host, SG_LOG_STATE, "adapter: enabled");
}
