#ifndef REDSHANK_NEIGHBOUR_ASKER_H
#define REDSHANK_NEIGHBOUR_ASKER_H
/*
 * What we ask of neighbours: a report of each, once a second, and grants. libcurl on an event loop,
 * over connections that are kept alive; which loop is neighbour.h's affair.
 */
#include <systemd/sd-event.h>

#include "agent/core/shed.h"
#include "agent/neighbour/message.h"
#include "agent/neighbour/pins.h"

#define ASKER_ERROR_MAX 160
#define ASKER_WHERE_MAX (ADDRESS_TEXT_MAX + 12) /* "[ADDRESS]:PORT" */

struct asker;

struct asker_ops {
	/* A report has come, and it is `member`'s of `pins`; the callee's to free. `asked` is
	 * before its request was sent; `where`: "ADDRESS:PORT" at which it was asked. */
	void (*report)(void *userdata, const struct pins *pins, size_t member,
		struct message_report *report, struct monotime asked, const char *where);
	/* None has. */
	void (*failed)(void *userdata, const struct pins *pins, size_t member, const char *text);
	/* A call was answered; what failed to be is not told. */
	void (*answered)(void *userdata, uint64_t id, const struct shed_answer *answer);
	void *userdata;
};

/* Asks for a grant, or gives it back. */
struct asker_call {
	uint64_t id; /* of the caller's, handed back */
	bool give_back;
	struct message_grant grant;
	char member[MESSAGE_NODE_MAX];
};

/* 0 or negative errno. */
int asker_new(struct asker **ret, sd_event *event, const struct asker_ops *ops);
void asker_free(struct asker *c); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct asker *, asker_free)

/* From now on these are whom to ask, over connections that are made anew; calls under way are
 * dropped. `site` is what reports must say; only their texts are kept. 0 or negative errno: then
 * nobody is asked. */
int asker_use(struct asker *c, struct pins *pins, const char *site);
/* Where members whose address is "bird" may be: each is asked at one after the other, until the
 * certificate is that member's. At most ASKER_FOUND_MAX count. */
#define ASKER_FOUND_MAX 64
void asker_found(struct asker *c, const struct address *addresses, size_t n);
/* Sends it now, or when those before it are answered; while it waits, a newer one about the same
 * prefix and purpose takes its place. What cannot be sent (an unknown member, too many that wait)
 * is dropped: who wants it calls again. */
void asker_call(struct asker *c, const struct asker_call *call);

#endif
