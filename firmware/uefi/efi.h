/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of the UEFI Specification (2.10) that the driver needs.
 *
 * Members are in the order of the specification's tables; `unused` ones only keep the layout.
 * The interfaces follow Microsoft's calling convention (section 2.3.4).
 */
#ifndef SG_UEFI_EFI_H
#define SG_UEFI_EFI_H

typedef unsigned char efi_u8;
typedef unsigned short efi_char;
typedef unsigned int efi_u32;
typedef unsigned long efi_u64, efi_uint, efi_status;
typedef void *efi_handle, *efi_event;
typedef void (*efi_unused)(void);

#define EFIAPI __attribute__((ms_abi))

/* Appendix D. */
#define EFI_SUCCESS 0ul
#define EFI_INVALID_PARAMETER (1ul << 63 | 2)
#define EFI_UNSUPPORTED (1ul << 63 | 3)

struct efi_guid {
    efi_u32 a;
    unsigned short b, c;
    efi_u8 d[8];
};

/* 4.2 */
struct efi_table_header {
    efi_u64 signature;
    efi_u32 revision, size, crc, reserved;
};

/* 12.4 */
struct efi_text_output {
    efi_unused reset;
    efi_status(EFIAPI *output_string)(struct efi_text_output *this, const efi_char *text);
};

enum { EFI_TPL_CALLBACK = 8 };       /* 7.1.8 */
enum { EFI_NOTIFY_SIGNAL = 0x200 };  /* 7.1.1 */
enum { EFI_OPEN_BY_DRIVER = 0x10 };  /* 7.3.9 */
enum { EFI_LOCATE_BY_PROTOCOL = 2 }; /* 7.3.15 */
enum { EFI_NATIVE_INTERFACE = 0 };   /* 7.3.2 */

typedef void(EFIAPI *efi_notify)(efi_event event, void *context);

/* 4.4 */
struct efi_boot_services {
    struct efi_table_header header;
    efi_unused tpl[2], memory[3], allocate_pool;
    efi_status(EFIAPI *free_pool)(void *buffer);
    efi_unused events[6];
    efi_status(EFIAPI *install_protocol)(efi_handle *handle, const struct efi_guid *protocol,
                                         int kind, void *interface);
    efi_unused protocols[8];
    efi_unused images[5], misc[3];
    efi_status(EFIAPI *connect_controller)(efi_handle controller, efi_handle *drivers,
                                           void *remaining, efi_u8 recursive);
    efi_unused disconnect_controller;
    efi_status(EFIAPI *open_protocol)(efi_handle handle, const struct efi_guid *protocol,
                                      void **interface, efi_handle agent, efi_handle controller,
                                      efi_u32 attributes);
    efi_status(EFIAPI *close_protocol)(efi_handle handle, const struct efi_guid *protocol,
                                       efi_handle agent, efi_handle controller);
    efi_unused open_information, protocols_per_handle;
    efi_status(EFIAPI *locate_handles)(int by, const struct efi_guid *protocol, void *key,
                                       efi_uint *count, efi_handle **handles);
    efi_unused locate_protocol, multiple[2], crc, copy, set;
    efi_status(EFIAPI *create_event_ex)(efi_u32 type, efi_uint tpl, efi_notify notify,
                                        const void *context, const struct efi_guid *group,
                                        efi_event *event);
};

/* 4.3 */
struct efi_system_table {
    struct efi_table_header header;
    const efi_char *vendor;
    efi_u32 revision;
    efi_handle input_handle;
    void *input;
    efi_handle output_handle;
    struct efi_text_output *output;
    efi_handle error_handle;
    struct efi_text_output *error;
    void *runtime_services;
    struct efi_boot_services *boot_services;
};

/* 11.1 */
struct efi_driver_binding {
    efi_status(EFIAPI *supported)(struct efi_driver_binding *this, efi_handle controller,
                                  void *remaining);
    efi_status(EFIAPI *start)(struct efi_driver_binding *this, efi_handle controller,
                              void *remaining);
    efi_status(EFIAPI *stop)(struct efi_driver_binding *this, efi_handle controller, efi_uint count,
                             efi_handle *children);
    efi_u32 version;
    efi_handle image, handle;
};

/* 11.5; languages: RFC 4646, separated by semicolons. */
struct efi_component_name {
    efi_status(EFIAPI *driver_name)(struct efi_component_name *this, const char *language,
                                    const efi_char **name);
    efi_status(EFIAPI *controller_name)(struct efi_component_name *this, efi_handle controller,
                                        efi_handle child, const char *language,
                                        const efi_char **name);
    const char *languages;
};

/* 14.4 */
enum { EFI_PCI_WIDTH_32 = 2, EFI_PCI_MEMORY_ON = 0x200 };
enum { EFI_PCI_ATTRIBUTES_GET = 0, EFI_PCI_ATTRIBUTES_SET = 1, EFI_PCI_ATTRIBUTES_ENABLE = 2 };

struct efi_pci_io {
    efi_unused poll[2];
    efi_status(EFIAPI *memory_read)(struct efi_pci_io *this, int width, efi_u8 bar, efi_u64 offset,
                                    efi_uint count, void *buffer);
    efi_unused memory_write, io[2];
    efi_status(EFIAPI *config_read)(struct efi_pci_io *this, int width, efi_u32 offset,
                                    efi_uint count, void *buffer);
    efi_unused config_write, copy, dma[5];
    efi_status(EFIAPI *location)(struct efi_pci_io *this, efi_uint *segment, efi_uint *bus,
                                 efi_uint *device, efi_uint *function);
    efi_status(EFIAPI *attributes)(struct efi_pci_io *this, int operation, efi_u64 attributes,
                                   efi_u64 *result);
};

#endif
