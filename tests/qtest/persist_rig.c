/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <glib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "persist_rig.h"
#include "tap.h"

struct persist_rig rig;

/* ---- the machine ---- */

void rig_make_media(unsigned mib)
{
    int fd;

    strcpy(rig.media, "/tmp/sg-media-XXXXXX");
    fd = g_mkstemp(rig.media);
    T_TRUE(fd >= 0 && ftruncate(fd, (off_t)mib << 20) == 0);
    close(fd);
}

static char *arguments(unsigned mib, const char *domain)
{
    return g_strdup_printf("-machine nvdimm=on -m slots=4,maxmem=8G "
                           "-object staghorn-domain,id=dom0,placement-delay=0,"
                           "posted-drain=eager%s%s "
                           "-object memory-backend-file,id=mem1,size=%uM,share=off,mem-path=%s "
                           "-device nvdimm,memdev=mem1 ",
                           *domain ? "," : "", domain, mib, rig.media);
}

void rig_restart(unsigned functions, unsigned mib, const char *domain)
{
    g_autofree char *args = arguments(mib, domain);

    rig.m = machine_start(functions, "", args);
}

void rig_start(unsigned functions, unsigned mib, const char *domain)
{
    rig_make_media(mib);
    rig_restart(functions, mib, domain);
}

void rig_start_anonymous(unsigned ram_mib, unsigned mib, const char *domain)
{
    static struct machine machine; /* QEMU and nothing more */
    g_autofree char *args = NULL, *line = NULL;

    rig_make_media(mib);
    args = arguments(mib, domain);
    line = g_strdup_printf("-m %u %s", ram_mib, args);
    machine.q = qtest_start(line);
    rig.m = &machine;
}

void rig_stop_anonymous(void)
{
    qtest_stop(rig.m->q);
    unlink(rig.media);
}

void rig_stop(void)
{
    machine_stop(rig.m);
    unlink(rig.media);
}

/* Both adapters come up; b offers persistent memory to a. */
void rig_sides(uint16_t port)
{
    uint32_t access = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_FLUSH_GLOBAL |
                      SG_ACCESS_FLUSH_PERSISTENT;

    side_start(&rig.a, &rig.m->f[0]);
    side_start(&rig.b, &rig.m->f[1]);
    rig.pm_stag = md_reg_mr(&rig.b.md, rig.b.pd, PM_BASE, REGION, SG_ACCESS_LOCAL_WRITE | access);
    md_create_qp(&rig.b.md, &rig.b.qp,
                 &(struct md_qp_params){
                     .pd = rig.b.pd,
                     .scq = &rig.b.cq,
                     .rcq = &rig.b.cq,
                     .access = access,
                 });
    sides_connect(&rig.a, &rig.b, port);
}

/* Two adapters in one machine. */
void rig_pair(const char *domain)
{
    rig_start(2, PM_MIB, domain);
    rig_sides(4000);
}

/* ---- properties ---- */

char *rig_get(const char *property)
{
    return qtest_qmp(rig.m->q,
                     "{\"execute\": \"qom-get\", \"arguments\": "
                     "{\"path\": \"" DOMAIN "\", \"property\": \"%s\"}}",
                     property);
}

/* value in JSON */
char *rig_try_set(const char *property, const char *value)
{
    return qtest_qmp(rig.m->q,
                     "{\"execute\": \"qom-set\", \"arguments\": "
                     "{\"path\": \"" DOMAIN "\", \"property\": \"%s\", \"value\": %s}}",
                     property, value);
}

void rig_set(const char *property, const char *value)
{
    g_autofree char *answer = rig_try_set(property, value);

    if (!strstr(answer, "\"return\"")) {
        T_FAIL("%s=%s: %s", property, value, answer);
    }
}

/* A number in the property "state", which is JSON within JSON. */
uint64_t rig_state(const char *name)
{
    g_autofree char *answer = rig_get("state");
    g_autofree char *key = g_strdup_printf("\\\"%s\\\": ", name);
    const char *at = strstr(answer, key);

    if (!at) {
        T_FAIL("no %s in %s", name, answer);
    }
    return g_ascii_strtoull(at + strlen(key), NULL, 10);
}

/* ---- stores and cuts ---- */

void rig_store(uint64_t offset, uint8_t value, size_t len)
{
    qtest_memset(rig.m->q, PM_BASE + offset, value, len);
}

/* Number of visible octets with this value. */
size_t rig_count(uint64_t offset, uint8_t value, size_t len)
{
    g_autofree uint8_t *buf = g_malloc(len);
    size_t found = 0, i;

    qtest_memread(rig.m->q, PM_BASE + offset, buf, len);
    for (i = 0; i < len; i++) {
        found += buf[i] == value;
    }
    return found;
}

/* Number of octets with this value on the media. */
size_t rig_count_media(uint64_t offset, uint8_t value, size_t len)
{
    g_autofree uint8_t *buf = g_malloc(len);
    size_t found = 0, i;
    int fd = open(rig.media, O_RDONLY);

    T_TRUE(fd >= 0 && pread(fd, buf, len, offset) == (ssize_t)len);
    close(fd);
    for (i = 0; i < len; i++) {
        found += buf[i] == value;
    }
    return found;
}

void rig_wait_for_cut(uint64_t cuts)
{
    unsigned i;

    for (i = 0; i < 100 && rig_state("cuts") < cuts; i++) {
        machine_settle(rig.m);
    }
    T_EQ_U64(rig_state("cuts"), cuts);
}

void rig_cut(const char *policy)
{
    uint64_t cuts = rig_state("cuts");
    g_autofree char *value = g_strdup_printf("\"%s\"", policy);

    rig_set("cut", value);
    rig_wait_for_cut(cuts + 1);
}

/* ---- an adapter's placements ---- */

/* a writes LEN octets of a value to b's persistent memory; waits until they are sent. */
void rig_write(uint64_t offset, uint8_t value)
{
    struct sg_cqe c;

    memset(side_ptr(&rig.a, 0), value, LEN);
    md_post_send(&rig.a.qp, &(struct md_wr){
                                .opcode = SG_WR_WRITE,
                                .addr = rig.a.buffer,
                                .len = LEN,
                                .lkey = rig.a.stag,
                                .raddr = PM_BASE + offset,
                                .rkey = rig.pm_stag,
                            });
    c = side_completion(&rig.a, 100);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    machine_pass(rig.m, 2);
}

void rig_post_flush(uint64_t offset, uint32_t flags)
{
    struct sg_wqe_hdr *h = md_sq_entry(&rig.a.qp);
    struct sg_wqe_place *place = (struct sg_wqe_place *)(h + 1);

    h->opcode = SG_WR_FLUSH;
    h->flags |= SG_WQE_SIGNALED;
    sg_put_le32(&h->rkey, rig.pm_stag);
    sg_put_le64(&h->remote_addr, PM_BASE + offset);
    sg_put_le32(&place->length, LEN);
    sg_put_le32(&place->flags, flags);
    md_sq_doorbell(&rig.a.qp);
}

unsigned rig_flush(uint64_t offset, uint32_t flags)
{
    rig_post_flush(offset, flags);
    return side_completion(&rig.a, 200).status;
}
