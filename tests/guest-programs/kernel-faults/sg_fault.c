// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One deliberate mistake for each checker of the debug kernel, to prove that the checkers work;
 * WARN and oops are reported by each kernel.
 *
 * insmod sg_fault.ko mistake=NAME makes it.  The module stays loaded, so that the call traces of
 * its leaks keep its name.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *mistake = "";
module_param(mistake, charp, 0);
MODULE_PARM_DESC(mistake, "which one to make");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spin);
static volatile char sink;

struct late {
    struct timer_list timer;
};

static void take_both(struct mutex *one, struct mutex *other)
{
    mutex_lock(one);
    mutex_lock(other);
    mutex_unlock(other);
    mutex_unlock(one);
}

static int lock_order(void)
{
    take_both(&first, &second);
    take_both(&second, &first);
    return 0;
}

static int sleep_with_lock(void)
{
    spin_lock(&spin);
    might_sleep();
    spin_unlock(&spin);
    return 0;
}

static void never(struct timer_list *timer)
{
}

/* The checker stops the timer before the memory is reused. */
static int free_active_timer(void)
{
    struct late *late = kmalloc(sizeof(*late), GFP_KERNEL);

    if (!late)
        return -ENOMEM;
    timer_setup(&late->timer, never, 0);
    mod_timer(&late->timer, jiffies + 3600 * HZ);
    kfree(late);
    return 0;
}

static int unmap_other_length(void)
{
    struct platform_device *device = platform_device_register_simple("sg_fault", -1, NULL, 0);
    dma_addr_t address;
    void *memory;
    int error;

    if (IS_ERR(device))
        return PTR_ERR(device);
    memory = kzalloc(64, GFP_KERNEL);
    error = memory ? dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64)) : -ENOMEM;
    if (!error) {
        address = dma_map_single(&device->dev, memory, 64, DMA_TO_DEVICE);
        error = dma_mapping_error(&device->dev, address);
        if (!error)
            dma_unmap_single(&device->dev, address, 32, DMA_TO_DEVICE);
    }
    kfree(memory);
    platform_device_unregister(device);
    return error;
}

static int count_below_zero(void)
{
    refcount_t count = REFCOUNT_INIT(1);

    if (refcount_dec_and_test(&count))
        refcount_dec(&count);
    return 0;
}

static int warn(void)
{
    WARN(1, "sg_fault: on purpose\n");
    return 0;
}

/* The kernel ends insmod, and goes on. */
static int oops(void)
{
    *(volatile int *)NULL = 1;
    return 0;
}

static int read_beyond(void)
{
    char *memory = kzalloc(32, GFP_KERNEL);

    if (!memory)
        return -ENOMEM;
    OPTIMIZER_HIDE_VAR(memory);
    sink = memory[32];
    kfree(memory);
    return 0;
}

static int leak(void)
{
    int i;

    /* More than one, because a register or the stack may still have the last one's address. */
    for (i = 0; i < 8; i++)
        if (!kmalloc(1000 + i, GFP_KERNEL))
            return -ENOMEM;
    return 0;
}

static const struct {
    const char *name;
    int (*make)(void);
} mistakes[] = {
    { "lockdep", lock_order },
    { "sleep", sleep_with_lock },
    { "ODEBUG", free_active_timer },
    { "DMA-API", unmap_other_length },
    { "refcount", count_below_zero },
    { "WARN", warn },
    { "KASAN", read_beyond },
    { "leak", leak },
    { "oops", oops },
};

static int __init sg_fault_init(void)
{
    int i;

    for (i = 0; i < ARRAY_SIZE(mistakes); i++)
        if (!strcmp(mistakes[i].name, mistake))
            return mistakes[i].make();
    return -EINVAL;
}

static void __exit sg_fault_exit(void)
{
}

module_init(sg_fault_init);
module_exit(sg_fault_exit);
MODULE_DESCRIPTION("Mistakes for the checkers of a debug kernel");
MODULE_LICENSE("GPL");
