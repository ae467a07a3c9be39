/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protocol between the launcher and the guest's agent, on one virtio-serial
 * port (a byte stream, one launcher client at a time).
 *
 * A session begins with the client's preamble: SG_AGENT_MAGIC and 16 random
 * octets.  The agent looks for it and skips whatever an earlier, broken session left in the stream.
 * From there on both sides send frames; the agent's first is 'h', whose payload repeats the random
 * octets, and the client skips everything before that frame.
 *
 *   octets 0-3  the first four random octets (a lost client shows as a wrong tag)
 *   octet  4    type
 *   octet  5    zero
 *   octets 6-7  payload length, little-endian
 *
 * From the client:
 *   'o'  part of the request: strings, each ended by a zero octet, the first
 *        character of each saying what it is:
 *        'a' argument   'e' NAME=VALUE   'd' working folder   't' ROWSxCOLUMNS (run on a terminal)
 *   'x'  run it
 *   'i'  input of the command     'f'  end of the input
 *   's'  signal for the command's process group (one octet)
 *   'w'  new size of the terminal: ROWSxCOLUMNS
 * From the agent:
 *   'h'  hello   '1' standard output   '2' standard error
 *   'q'  the command ended; 4 octets: exit status, or 128 + signal
 *
 * After 'q' the session is over.  If the client goes away before that, the agent ends the command:
 * it sends SIGTERM, then SIGKILL, to the command's process group.
 */
#ifndef SG_GUEST_AGENT_H
#define SG_GUEST_AGENT_H

#include <stdbool.h>

#define SG_AGENT_MAGIC "\x01sg-agent-start\n" /* 16 octets */
#define SG_AGENT_MAGIC_LEN 16
#define SG_AGENT_NONCE_LEN 16
#define SG_AGENT_HEADER_LEN 8
#define SG_AGENT_REQUEST_MAX (1 << 20)

/* Serves sessions on the port of that name for ever; never returns. */
void sg_agent_serve(const char *device);

#endif
