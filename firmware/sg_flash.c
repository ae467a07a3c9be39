/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sg-flash: makes, changes and shows firmware and flash images.
 *
 * It uses the codec of the device model (hw/core/flash), so the model reads what it writes.
 */
#include <glib.h>
#include <inttypes.h>

#include "flash/chip.h"
#include "flash/rom.h"
#include "staghorn/admin.h"

static const char usage[] =
    "usage: sg-flash rom BIOS.bin OUT.rom [UEFI.efi]\n"
    "           make an expansion ROM: an image for a BIOS, and one for UEFI if given\n"
    "       sg-flash firmware OUT.fw PROFILES.ini PROFILE VERSION [FILE.rom]\n"
    "           make a firmware, the file of an update (devlink dev flash)\n"
    "       sg-flash chip OUT.flash FILE.fw [NAME=VALUE]...\n"
    "           make a flash image (the device's romfile); NAMEs: product part serial mac guid\n"
    "       sg-flash identity FILE.flash NAME=VALUE...\n"
    "           change the identity of the adapter in a flash image\n"
    "       sg-flash show FILE\n"
    "           print the contents of a firmware or a flash image; status 1 if it is invalid\n";

G_GNUC_NORETURN G_GNUC_PRINTF(1, 2) static void die(const char *format, ...)
{
    va_list ap;

    fputs("sg-flash: ", stderr);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static uint8_t *load(const char *path, size_t *len)
{
    GError *error = NULL;
    char *octets;

    if (!g_file_get_contents(path, &octets, len, &error)) {
        die("%s", error->message);
    }
    return (uint8_t *)octets;
}

static void save(const char *path, const uint8_t *octets, size_t len)
{
    GError *error = NULL;

    if (!g_file_set_contents(path, (const char *)octets, len, &error)) {
        die("%s", error->message);
    }
}

/* ---- rom ---- */

static int do_rom(int count, char **args)
{
    struct sg_span bios, efi = SG_SPAN_NONE;
    const char *why;
    uint8_t *octets, *rom;
    size_t len;

    octets = load(args[0], &len);
    bios = sg_span_of(octets, len);
    if (count > 2) {
        octets = load(args[2], &len);
        efi = sg_span_of(octets, len);
    }
    rom = sg_rom_make(bios, efi, &len, &why);
    if (!rom) {
        die("%s: %s", args[1], why);
    }
    save(args[1], rom, len);
    return 0;
}

/* ---- firmware ---- */

static const struct {
    const char *name;
    uint32_t bits;
} features[] = {
    { "fast-reg", SG_FEATURE_FAST_REG },
    { "read-inv", SG_FEATURE_READ_INV },
    { "srq", SG_FEATURE_SRQ | SG_FEATURE_SRQ_RESIZE },
    { "srq-resize", SG_FEATURE_SRQ_RESIZE },
    { "flush", SG_FEATURE_FLUSH | SG_FEATURE_FLUSH_PERSISTENT | SG_FEATURE_FLUSH_REGION },
    { "atomics", SG_FEATURE_ATOMICS },
    { "verify", SG_FEATURE_VERIFY },
    { "atomic-write", SG_FEATURE_ATOMIC_WRITE },
    { "imm", SG_FEATURE_IMM },
    { "mw", SG_FEATURE_MW },
    { "send-inv", SG_FEATURE_SEND_INV },
};

static uint32_t parse_without(const char *text)
{
    char **names = g_strsplit(text, " ", -1);
    uint32_t left = UINT32_MAX;

    for (char **name = names; *name; name++) {
        size_t i = 0;

        while (i < SG_ARRAY_SIZE(features) && strcmp(features[i].name, *name)) {
            i++;
        }
        if (i == SG_ARRAY_SIZE(features)) {
            die("without: there is no feature '%s'", *name);
        }
        left &= ~features[i].bits;
    }
    g_strfreev(names);
    return left;
}

static uint64_t parse_number(const char *key, const char *text, uint64_t max)
{
    bool hex = text[0] == '0' && text[1] == 'x';
    guint64 value;

    if (!g_ascii_string_to_unsigned(hex ? text + 2 : text, hex ? 16 : 10, 0, max, &value, NULL)) {
        die("%s: '%s' is not a number to %" G_GUINT64_FORMAT, key, text, (guint64)max);
    }
    return value;
}

static uint8_t parse_choice(const char *key, const char *text, const char *choices)
{
    char **names = g_strsplit(choices, " ", -1);
    unsigned i;

    for (i = 0; names[i] && strcmp(names[i], text);) {
        i++;
    }
    if (!names[i]) {
        die("%s: '%s' is none of: %s", key, text, choices);
    }
    g_strfreev(names);
    return i;
}

static bool parse_limit(struct sg_profile_info *p, const char *key, const char *text)
{
    const struct {
        const char *key;
        uint32_t *value;
    } rows[] = {
        { "max-qp", &p->max_qp },       { "max-cq", &p->max_cq },
        { "max-mr", &p->max_mr },       { "max-pd", &p->max_pd },
        { "max-qp-wr", &p->max_qp_wr }, { "max-cqe", &p->max_cqe },
        { "max-sge", &p->max_sge },     { "max-inline", &p->max_inline },
        { "max-ird", &p->max_ird },     { "max-ord", &p->max_ord },
        { "max-conns", &p->max_conns }, { "max-listeners", &p->max_listeners },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        if (!strcmp(rows[i].key, key)) {
            *rows[i].value = parse_number(key, text, UINT32_MAX - 1);
            return true;
        }
    }
    return false;
}

static void parse_key(struct sg_profile_info *p, const char *key, const char *text)
{
    if (!strcmp(key, "without")) {
        p->features = parse_without(text);
    } else if (!strcmp(key, "mpa-rev")) {
        p->mpa_rev = parse_number(key, text, 2);
    } else if (!strcmp(key, "crc")) {
        p->crc = parse_choice(key, text, "off on");
    } else if (!strcmp(key, "markers")) {
        p->markers = parse_choice(key, text, "off on");
    } else if (!strcmp(key, "peer-to-peer")) {
        p->peer_to_peer = parse_choice(key, text, "off on");
    } else if (!strcmp(key, "commit")) {
        p->commit = parse_choice(key, text, "off 01 02");
    } else if (!strcmp(key, "max-mr-size")) {
        uint64_t size = parse_number(key, text, 1ull << 48);

        if (!sg_is_pow2(size)) {
            die("max-mr-size: %s is not a power of two", text);
        }
        p->max_mr_size = __builtin_ctzll(size);
    } else if (strcmp(key, "description") && !parse_limit(p, key, text)) {
        die("there is no setting '%s'", key);
    }
}

static void read_profile(const char *path, const char *name, struct sg_profile_info *p)
{
    GKeyFile *file = g_key_file_new();
    GError *error = NULL;
    char **keys;

    if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, &error)) {
        die("%s: %s", path, error->message);
    }
    keys = g_key_file_get_keys(file, name, NULL, NULL);
    if (!keys) {
        die("%s has no profile '%s'", path, name);
    }
    sg_profile_init(p, name);
    for (char **key = keys; *key; key++) {
        char *text = g_key_file_get_value(file, name, *key, NULL);

        parse_key(p, *key, text);
        g_free(text);
    }
    g_strfreev(keys);
    g_key_file_free(file);
}

static int do_firmware(int count, char **args)
{
    struct sg_profile_info profile;
    struct sg_span rom = SG_SPAN_NONE;
    uint8_t *octets;
    size_t len;

    if (strlen(args[2]) > 16) {
        die("profile '%s': a name has at most 16 characters", args[2]);
    }
    read_profile(args[1], args[2], &profile);
    if (count > 4) {
        size_t rom_len;
        uint8_t *p = load(args[4], &rom_len);

        rom = sg_span_of(p, rom_len);
    }
    octets = sg_firmware_make(args[3], &profile, rom, &len);
    if (!octets) {
        die("cannot make a firmware of this version, profile and ROM");
    }
    save(args[0], octets, len);
    return 0;
}

/* ---- chips ---- */

static void put_field(char *field, size_t size, const char *value)
{
    if (g_strlcpy(field, value, size) >= size) {
        die("'%s' is too long: at most %zu characters", value, size - 1);
    }
}

static void set_identity(struct sg_identity *id, const char *setting)
{
    const char *equals = strchr(setting, '='), *value = equals ? equals + 1 : setting;
    size_t name = equals ? (size_t)(equals - setting) : 0;

    if (name == 7 && !memcmp(setting, "product", 7)) {
        put_field(id->product, sizeof(id->product), value);
    } else if (name == 4 && !memcmp(setting, "part", 4)) {
        put_field(id->part, sizeof(id->part), value);
    } else if (name == 6 && !memcmp(setting, "serial", 6)) {
        put_field(id->serial, sizeof(id->serial), value);
    } else if (name == 3 && !memcmp(setting, "mac", 3)) {
        uint8_t *m = id->mac;
        char end;

        if (sscanf(value, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &m[0], &m[1], &m[2], &m[3],
                   &m[4], &m[5], &end) != 6) {
            die("'%s' is not a MAC address", value);
        }
    } else if (name == 4 && !memcmp(setting, "guid", 4)) {
        id->guid = parse_number("guid", value, UINT64_MAX);
    } else {
        die("'%s' is not NAME=VALUE with product, part, serial, mac or guid", setting);
    }
}

static void write_identity(uint8_t *chip, struct sg_identity *id, int count, char **settings)
{
    for (int i = 0; i < count; i++) {
        set_identity(id, settings[i]);
    }
    if (!sg_identity_make(id, (void *)chip)) {
        die("texts must be printable, and mac a unicast address");
    }
}

static int do_chip(int count, char **args)
{
    struct sg_identity id = { .product = "Staghorn iWARP RDMA adapter", .part = "SG-1" };
    uint8_t *slot, *chip = g_malloc(SG_FLASH_SIZE), *octets;
    enum sg_flash_reason reason;
    struct sg_firmware fw;
    size_t len;

    octets = load(args[1], &len);
    reason = sg_firmware_parse(sg_span_of(octets, len), &fw);
    if (reason) {
        die("%s: %s", args[1], sg_flash_reason_text(reason));
    }
    memset(chip, 0xff, SG_FLASH_SIZE);
    write_identity(chip, &id, count - 2, args + 2);
    slot = chip + SG_FLASH_SLOT_BASE;
    memcpy(slot + SG_FLASH_FW_OFFSET, octets, fw.length);
    sg_slot_make(&fw, 1, (void *)slot);
    save(args[0], chip, SG_FLASH_SIZE);
    return 0;
}

static int do_identity(int count, char **args)
{
    enum sg_flash_reason reason;
    struct sg_identity id;
    size_t len;
    uint8_t *chip = load(args[0], &len);

    reason = sg_identity_parse(sg_span_of(chip, len), &id);
    if (reason) {
        die("%s: %s", args[0], sg_flash_reason_text(reason));
    }
    write_identity(chip, &id, count - 1, args + 1);
    save(args[0], chip, len);
    return 0;
}

/* ---- show ---- */

static void show_firmware(const char *indent, const struct sg_firmware *fw)
{
    printf("%sversion %s\n%sprofile %s\n%slength %u\n%srom %zu\n", indent, fw->version, indent,
           fw->profile.name, indent, fw->length, indent, fw->rom.len);
}

static int show_chip(struct sg_span s)
{
    const struct sg_flash_ops none = { 0 };
    char *why = NULL;
    struct sg_flash *f = sg_flash_new(s, &none, &why);
    const struct sg_identity *id;

    if (!f) {
        printf("refused: %s\n", why);
        return 1;
    }
    id = sg_flash_identity(f);
    printf("product %s\npart %s\nserial %s\nmac %02x:%02x:%02x:%02x:%02x:%02x\n"
           "guid 0x%016" PRIx64 "\n",
           id->product, id->part, id->serial, id->mac[0], id->mac[1], id->mac[2], id->mac[3],
           id->mac[4], id->mac[5], id->guid);
    for (unsigned i = 0; i < SG_FLASH_SLOTS; i++) {
        const struct sg_slot_state *slot = sg_flash_slot(f, i);

        if (slot->reason) {
            printf("slot %u: %s\n", i, sg_flash_reason_text(slot->reason));
        } else {
            printf("slot %u: sequence %u%s\n", i, slot->sequence,
                   i == sg_flash_running(f) ? ", runs" : "");
            show_firmware("  ", &slot->fw);
        }
    }
    return 0;
}

static int do_show(int count, char **args)
{
    enum sg_flash_reason reason;
    struct sg_firmware fw;
    size_t len;
    uint8_t *octets = load(args[0], &len);

    if (len >= 8 && !memcmp(octets, SG_FW_MAGIC, 8)) {
        reason = sg_firmware_parse(sg_span_of(octets, len), &fw);
        if (reason) {
            printf("refused: %s\n", sg_flash_reason_text(reason));
            return 1;
        }
        show_firmware("", &fw);
        return 0;
    }
    return show_chip(sg_span_of(octets, len));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int min, max;
        int (*run)(int count, char **args);
    } verbs[] = {
        { "rom", 2, 3, do_rom },    { "firmware", 4, 5, do_firmware },
        { "chip", 2, 16, do_chip }, { "identity", 2, 16, do_identity },
        { "show", 1, 1, do_show },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(verbs) && argc > 1; i++) {
        if (!strcmp(verbs[i].name, argv[1]) && argc - 2 >= verbs[i].min &&
            argc - 2 <= verbs[i].max) {
            return verbs[i].run(argc - 2, argv + 2);
        }
    }
    fputs(usage, stderr);
    return 2;
}
