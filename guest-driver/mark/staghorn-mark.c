// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * staghorn-mark KIND [TEXT]: a mark for scripts; with the text "-" that is standard input.
 *
 * Status 0 whether or not anybody listens; 2: the arguments are wrong.
 */
#include <stdio.h>
#include <string.h>

#include "staghorn_mark.h"

int main(int argc, char **argv)
{
	static char text[SG_MARK_TEXT_MAX + 1];
	size_t length;

	if (argc < 2 || argc > 3 || !argv[1][0] || strlen(argv[1]) > SG_MARK_KIND_MAX) {
		fprintf(stderr, "usage: staghorn-mark KIND [TEXT | -]\n");
		return 2;
	}
	if (argc == 3 && strcmp(argv[2], "-") == 0) {
		length = fread(text, 1, sizeof(text), stdin);
	} else {
		length = argc == 3 ? strlen(argv[2]) : 0;
		memcpy(text, argc == 3 ? argv[2] : "",
		       length < sizeof(text) ? length : sizeof(text));
	}
	if (length > SG_MARK_TEXT_MAX) {
		fprintf(stderr, "staghorn-mark: the text has more than %d octets\n",
			SG_MARK_TEXT_MAX);
		return 2;
	}
	sg_mark_octets(argv[1], text, length);
	return 0;
}
