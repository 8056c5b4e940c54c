#ifndef REDSHANK_NEIGHBOUR_PINS_H
#define REDSHANK_NEIGHBOUR_PINS_H
/*
 * Who may speak: our certificate and key, the authority, and the neighbours by name and address.
 * One immutable object, read whole from its files, swapped whole, shared by count between the
 * agent's loop and the neighbours' thread.
 */
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/base/error.h"
#include "agent/base/monotime.h"
#include "agent/config/config.h"

struct pins;

struct pins_member {
	char *name;    /* as its certificate has it */
	char *address; /* "ADDRESS:PORT", or "bird" */
	bool of_file;  /* from `neighbours.file` */
	bool of_bird;  /* its address is to be found: `socket` is empty */
	struct sockaddr_storage socket;
};

/*
 * Reads the files that the configuration names. 0; or negative errno with the text, which names the
 * file. What is merely unwise (our certificate ends soon, does not bear our name) is in
 * pins_warning(). Blocks on the disk: for start, reload and changes of the files.
 */
int pins_new(struct pins **ret, const struct config_neighbours *config, const char *node,
	struct error *ret_error);
struct pins *pins_ref(struct pins *p);
void pins_unref(struct pins *p); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct pins *, pins_unref)
#define _cleanup_pins_ _cleanup_(pins_unrefp)

/* Do both mean the same certificates and members? Either may be NULL. */
bool pins_equal(const struct pins *a, const struct pins *b);

/* In the order of their names; this node is not among them. */
size_t pins_count(const struct pins *p);
const struct pins_member *pins_member(const struct pins *p, size_t i);
/* The member's index, or SIZE_MAX. */
size_t pins_find(const struct pins *p, const char *name);
/* The first member that listens at this address, whatever the port, or SIZE_MAX. */
size_t pins_find_host(const struct pins *p, const struct sockaddr_storage *address);

/* The address from which to call an address of this family: the one on which we listen, by which
 * neighbours know us. NULL: any, where that is one for all interfaces or of another family. */
const char *pins_source(const struct pins *p, int family);
/* The port on which we listen, and those whose address is found. */
unsigned pins_port(const struct pins *p);

bool pins_are_plain(const struct pins *p);
const char *pins_warning(const struct pins *p);	   /* "" where there is none */
struct walltime pins_expire(const struct pins *p); /* our certificate; 0: plain */

enum pins_file {
	PINS_CERTIFICATE,
	PINS_KEY,
	PINS_CA,
};
#define PINS_FILES 3
/* PEM; NULL with plain. */
const char *pins_pem(const struct pins *p, enum pins_file file, size_t *ret_n);

/* Why a caller was turned away. */
enum pins_refusal {
	PINS_WELCOME,
	PINS_NO_CERTIFICATE,
	PINS_UNTRUSTED, /* of another authority, or for another use */
	PINS_EXPIRED,	/* or not valid yet */
	PINS_STRANGER,	/* of our authority, and no neighbour's name */
	PINS_AMBIGUOUS, /* two neighbours' names */
	PINS_NO_TLS,	/* the handshake was broken off, or was none */
};
#define PINS_REFUSALS (PINS_NO_TLS + 1)
const char *pins_refusal_name(enum pins_refusal refusal); /* "no_certificate", ... */

/* For the server's sessions. */
gnutls_certificate_credentials_t pins_credentials(const struct pins *p);
/* Judges the certificate that the session's client has shown. *ret_member is who it is. */
enum pins_refusal pins_verify(const struct pins *p, gnutls_session_t session, size_t *ret_member);
/* Is this certificate (PEM, NULL: none) that member's and no other's? Its chain, validity and use
 * were verified elsewhere. */
bool pins_are_of(const struct pins *p, const char *pem, size_t member);

#endif
