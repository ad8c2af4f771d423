/*
 * Events of completions that a claimed slot of a CQ's second ring hides: they are raised when they can be polled, by
 * whoever fills the slot or gives it up, and not before.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ipc/pusher.h"

enum { ENTRIES = 4 };

static int failures;

static void expect(const char *what, bool got, bool want)
{
	if (got == want)
		return;
	failures++;
	fprintf(stderr, "hidden: %s: the event is %sdue\n", what, got ? "" : "not ");
}

int main(void)
{
	const struct svpi_cqe plain = { .id = 1 }, solicited = { .id = 2, .flags = SVPI_CQE_SOLICITED };
	size_t size = (svpi_pusher_size(ENTRIES) + 63) / 64 * 64;
	void *memory = aligned_alloc(64, size);
	struct svpi_pusher p;

	for (int way = 0; way < 3; way++) { /* the slot is filled; given up; filled, and what it hid is in the first ring */
		uint32_t first, second;

		memset(memory, 0, size);
		svpi_pusher_open(&p, memory, ENTRIES);
		expect("not armed", svpi_due(&p, 0, &solicited), false);
		atomic_store(&p.h->arm, SVPI_ARM_SOLICITED);
		svpi_claim(&p, 1, &first);
		if (way < 2) {
			svpi_claim(&p, 2, &second);
			svpi_fill(&p, second, 2, &solicited);
			expect("a solicited completion behind a claim", svpi_due(&p, second, &solicited), false);
		} else {
			atomic_store(&p.h->producer, 1);
		}
		if (way == 1)
			svpi_cancel(&p, first, 1);
		else
			svpi_fill(&p, first, 1, &plain);
		expect("what hid something", svpi_due(&p, first, way == 1 ? NULL : &plain), true);
	}
	memset(memory, 0, size);
	svpi_pusher_open(&p, memory, ENTRIES);
	atomic_store(&p.h->arm, SVPI_ARM_SOLICITED);

	uint32_t only;

	svpi_claim(&p, 1, &only);
	svpi_fill(&p, only, 1, &plain);
	expect("an unsolicited completion alone", svpi_due(&p, only, &plain), false);
	svpi_claim(&p, 1, &only);
	svpi_fill(&p, only, 1, &solicited);
	expect("a solicited completion behind one that can be polled", svpi_due(&p, only, &solicited), true);
	free(memory);
	if (failures == 0)
		printf("hidden     ok\n");
	return failures != 0;
}
