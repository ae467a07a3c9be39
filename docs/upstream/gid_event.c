/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel module that provokes the races of linux-0001 and linux-0002: it sends
 * IB_EVENT_GID_CHANGE for port 1 of an RDMA device in a loop.
 *
 *   insmod gid_event.ko device=staghorn0 pause_us=1000
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static char *device = "staghorn0";
module_param(device, charp, 0444);
static int pause_us = 1000;
module_param(pause_us, int, 0444);
static long sent; /* so far; read it in /sys/module/gid_event/parameters */
module_param(sent, long, 0444);

static struct ib_device *dev;
static struct task_struct *task;

static int send_events(void *unused)
{
    while (!kthread_should_stop()) {
        struct ib_event event = { .device = dev,
                                  .event = IB_EVENT_GID_CHANGE,
                                  .element.port_num = 1 };

        ib_dispatch_event(&event);
        sent++;
        usleep_range(pause_us, pause_us + pause_us / 4 + 1);
    }
    return 0;
}

static int __init start(void)
{
    dev = ib_device_get_by_name(device, RDMA_DRIVER_UNKNOWN);
    if (!dev)
        return -ENODEV;
    task = kthread_run(send_events, NULL, "gid_event");
    if (IS_ERR(task)) {
        ib_device_put(dev);
        return PTR_ERR(task);
    }
    return 0;
}

static void __exit end(void)
{
    kthread_stop(task);
    ib_device_put(dev);
}

module_init(start);
module_exit(end);
MODULE_DESCRIPTION("Sends IB_EVENT_GID_CHANGE in a loop");
MODULE_LICENSE("GPL");
