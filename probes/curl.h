#ifndef REDSHANK_PROBES_CURL_H
#define REDSHANK_PROBES_CURL_H
/*
 * libcurl's multi interface joined to the loop: every http check of an agent runs through here, and
 * what is asked of neighbours.
 *
 * A curl_loop is one multi handle with its sockets and its timer on an sd_event. There is one for
 * each event loop and CA file, shared by count: libcurl keeps one parsed CA file a multi handle, so
 * that checks with different files on one handle would parse theirs again for every attempt.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

struct curl_loop;

/* One transfer after another on one easy handle. Lives inside its owner's struct. */
struct curl_transfer {
	CURL *easy; /* the owner's; its CURLOPT_PRIVATE is taken */
	/* The transfer is over, and may be started again. Called from the loop, never from inside
	 * curl_transfer_start(). `errnum` is 0, or what stopped the loop from watching the
	 * transfer's socket (`result` then means nothing). The owner may free everything in it. */
	void (*done)(struct curl_transfer *t, CURLcode result, int errnum);
	void *owner;		/* for done() */
	struct curl_loop *loop; /* NULL while none is under way */
	int errnum;
	struct curl_transfer *next_marked; /* of those that the loop has failed */
};

/* The loop's multi handle for this CA file (NULL: none is needed). 0, -ENOMEM or another negative
 * errno. Given back with curl_loop_unref(). */
int curl_loop_get(sd_event *event, const char *ca, struct curl_loop **ret);
/* One that nobody else shares, which keeps up to `kept` connections that wait; for a loop of any
 * thread, once curl_loop_prepare() was called by the first one. `name` is that of its sources, and
 * lives on. */
int curl_loop_new(sd_event *event, const char *name, unsigned kept, struct curl_loop **ret);
int curl_loop_prepare(void); /* the library as a whole; 0 or -ENOMEM */
struct curl_loop *curl_loop_unref(struct curl_loop *loop); /* NULL is fine; returns NULL */

/* Begins; the socket is opened when the loop runs next. 0 or -ENOMEM. */
int curl_transfer_start(struct curl_transfer *t, struct curl_loop *loop);
/* Drops it, with its connection; done() is not called. Nothing happens when none is under way. Not
 * from inside a callback of the easy handle. */
void curl_transfer_stop(struct curl_transfer *t);

#endif
