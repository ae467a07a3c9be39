/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The expansion ROM's image for UEFI: a driver that prints the adapter's lines (../rom/lines.c).
 *
 * The firmware loads it when it finds the ROM, before there is a console.  It prints the lines each
 * time that it is bound to an adapter.  If a firmware connects only the devices that it boots from,
 * the driver lets it connect the remaining adapters right before it boots.
 *
 * The driver writes nothing to the adapter and restores its state: bus mastering stays off.
 */
#include "efi.h"
#include "lines.h"
#include "staghorn/regs.h"

enum { LINE_MAX = 128, DRIVER_VERSION = 0x10 };

static const struct efi_guid pci_io_guid = {
    0x4cf5b200,
    0x68b8,
    0x4ca5,
    { 0x9e, 0xec, 0xb2, 0x3e, 0x3f, 0x50, 0x02, 0x9a },
};
static const struct efi_guid driver_binding_guid = {
    0x18a031ab,
    0xb443,
    0x4d1a,
    { 0xa5, 0xc0, 0x0c, 0x09, 0x26, 0x1e, 0x9f, 0x71 },
};
static const struct efi_guid ready_to_boot_guid = {
    0x7ce88fb3,
    0x4bd7,
    0x4679,
    { 0x87, 0xa8, 0xa8, 0xd8, 0xde, 0xe5, 0x0d, 0x2b },
};

static const struct efi_guid component_name_guid = {
    0x6a7a5cff,
    0xe8d9,
    0x4f70,
    { 0xba, 0xda, 0x75, 0xab, 0x30, 0x25, 0xce, 0x14 },
};

static struct efi_system_table *table;
static struct efi_boot_services *services;
static struct efi_driver_binding binding;
static struct efi_component_name names;
static efi_char line[LINE_MAX + 1];
static unsigned line_len;

efi_status EFIAPI uefi_main(efi_handle image, struct efi_system_table *system);

void put_char(char c)
{
    line[line_len++] = (u8)c;
    if (c == '\n' || line_len == LINE_MAX) {
        line[line_len] = 0;
        line_len = 0;
        if (table->output) {
            table->output->output_string(table->output, line);
        }
    }
}

u32 reg_read(reg_place at, u32 reg)
{
    struct efi_pci_io *io = (struct efi_pci_io *)at;
    u32 value;

    if (io->memory_read(io, EFI_PCI_WIDTH_32, SG_BAR_REGS, reg, 1, &value)) {
        return ~0u;
    }
    return value;
}

/* Prints the lines, with the adapter's memory decoding enabled for that time. */
static void say(struct efi_pci_io *io)
{
    efi_uint segment = 0, bus = 0, device = 0, function = 0;
    efi_u64 before = 0;
    int on;

    io->location(io, &segment, &bus, &device, &function);
    on = !io->attributes(io, EFI_PCI_ATTRIBUTES_GET, 0, &before) &&
         !io->attributes(io, EFI_PCI_ATTRIBUTES_ENABLE, EFI_PCI_MEMORY_ON, 0);
    say_adapter(on ? (reg_place)io : 0, bus << 8 | device << 3 | function);
    if (on) {
        io->attributes(io, EFI_PCI_ATTRIBUTES_SET, before, 0);
    }
}

static efi_status acquire(efi_handle controller, void **io)
{
    return services->open_protocol(controller, &pci_io_guid, io, binding.handle, controller,
                                   EFI_OPEN_BY_DRIVER);
}

static efi_status release(efi_handle controller)
{
    return services->close_protocol(controller, &pci_io_guid, binding.handle, controller);
}

static int is_ours(struct efi_pci_io *io)
{
    u32 ids;

    return !io->config_read(io, EFI_PCI_WIDTH_32, 0, 1, &ids) &&
           ids == (SG_PCI_DEVICE_ID << 16 | SG_PCI_VENDOR_ID);
}

static efi_status EFIAPI supported(struct efi_driver_binding *this, efi_handle controller,
                                   void *remaining)
{
    void *io;
    efi_status status = acquire(controller, &io);

    (void)this, (void)remaining;
    if (status) {
        return status;
    }
    status = is_ours(io) ? EFI_SUCCESS : EFI_UNSUPPORTED;
    release(controller);
    return status;
}

static efi_status EFIAPI start(struct efi_driver_binding *this, efi_handle controller,
                               void *remaining)
{
    void *io;
    efi_status status = acquire(controller, &io);

    (void)this, (void)remaining;
    if (!status) {
        say(io);
    }
    return status;
}

static efi_status EFIAPI stop(struct efi_driver_binding *this, efi_handle controller,
                              efi_uint count, efi_handle *children)
{
    (void)this, (void)count, (void)children;
    return release(controller);
}

static efi_status EFIAPI driver_name(struct efi_component_name *this, const char *language,
                                     const efi_char **name)
{
    static const efi_char text[] = L"Staghorn iWARP RDMA adapter";

    (void)this;
    if (!language || !name) {
        return EFI_INVALID_PARAMETER;
    }
    if (language[0] != 'e' || language[1] != 'n') {
        return EFI_UNSUPPORTED;
    }
    *name = text;
    return EFI_SUCCESS;
}

/* An adapter has no name beyond its path. */
static efi_status EFIAPI controller_name(struct efi_component_name *this, efi_handle controller,
                                         efi_handle child, const char *language,
                                         const efi_char **name)
{
    (void)this, (void)controller, (void)child, (void)language, (void)name;
    return EFI_UNSUPPORTED;
}

/* Adapters that are already connected are skipped: supported() finds them in use. */
static void EFIAPI ready_to_boot(efi_event event, void *context)
{
    efi_handle *handles;
    efi_uint count;

    (void)event, (void)context;
    if (services->locate_handles(EFI_LOCATE_BY_PROTOCOL, &pci_io_guid, 0, &count, &handles)) {
        return;
    }
    for (efi_uint i = 0; i < count; i++) {
        if (!supported(&binding, handles[i], 0)) {
            services->connect_controller(handles[i], 0, 0, 0);
        }
    }
    services->free_pool(handles);
}

/* The addresses of functions are stored at run time, so the image needs no relocations. */
efi_status EFIAPI uefi_main(efi_handle image, struct efi_system_table *system)
{
    efi_event event;
    efi_status status;

    table = system;
    services = system->boot_services;
    binding.supported = supported;
    binding.start = start;
    binding.stop = stop;
    binding.version = DRIVER_VERSION;
    binding.image = binding.handle = image;
    status = services->install_protocol(&binding.handle, &driver_binding_guid, EFI_NATIVE_INTERFACE,
                                        &binding);
    if (!status) {
        names.driver_name = driver_name;
        names.controller_name = controller_name;
        names.languages = "en";
        services->install_protocol(&binding.handle, &component_name_guid, EFI_NATIVE_INTERFACE,
                                   &names);
        services->create_event_ex(EFI_NOTIFY_SIGNAL, EFI_TPL_CALLBACK, ready_to_boot, 0,
                                  &ready_to_boot_guid, &event);
    }
    return status;
}
