/*
 * Why a transfer failed, in words for whoever is called at night. libcurl knows a code, for a
 * connection an errno, for a certificate OpenSSL's number, and a text; of these the shortest that
 * says what to do. With a libcurl on another TLS library the number is another one, so the text is
 * asked too.
 */
#include <errno.h>
#include <string.h>

#include "probes/http.h"
#include "probes/peer.h"

/* openssl/x509_vfy.h; part of OpenSSL's ABI. */
enum x509 {
	X509_OK = 0,
	X509_UNABLE_TO_GET_ISSUER = 2,
	X509_NOT_YET_VALID = 9,
	X509_EXPIRED = 10,
	X509_SELF_SIGNED = 18,
	X509_SELF_SIGNED_IN_CHAIN = 19,
	X509_UNABLE_TO_GET_ISSUER_LOCALLY = 20,
	X509_UNABLE_TO_VERIFY_LEAF = 21,
	X509_HOSTNAME_MISMATCH = 62,
	X509_IP_ADDRESS_MISMATCH = 64,
};

static const char *word_of_number(long number)
{
	switch (number) {
	case X509_EXPIRED:
		return "expired";
	case X509_NOT_YET_VALID:
		return "not valid yet";
	case X509_SELF_SIGNED:
		return "unknown issuer (self-signed)";
	case X509_UNABLE_TO_GET_ISSUER:
	case X509_SELF_SIGNED_IN_CHAIN:
	case X509_UNABLE_TO_GET_ISSUER_LOCALLY:
	case X509_UNABLE_TO_VERIFY_LEAF:
		return "unknown issuer";
	case X509_HOSTNAME_MISMATCH:
	case X509_IP_ADDRESS_MISMATCH:
		return "wrong name";
	default: /* OpenSSL's, not ours */
		return NULL;
	}
}

static const char *word_of_text(const char *error)
{
	static const struct {
		const char *part, *word;
	} table[] = {
		{"expired", "expired"},
		{"not yet", "not valid yet"},
		{"not activated", "not valid yet"},
		{"self-signed", "unknown issuer (self-signed)"},
		{"issuer", "unknown issuer"},
		{"does not match", "wrong name"},
		{"name matches", "wrong name"},
		{"unable to obtain common name", "wrong name"},
		{"not trusted", "unknown issuer"},
	};

	for (size_t i = 0; i < ELEMENTSOF(table); i++)
		if (strstr(error, table[i].part))
			return table[i].word;
	return NULL;
}

static void report_certificate(
	struct probe *p, CURL *easy, const struct http_target *target, const char *error)
{
	long number = X509_OK;
	const char *word;

	(void)curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &number);
	word = word_of_number(number);
	if (!word)
		word = word_of_text(error);
	if (!word)
		probe_report(p, CHECK_OUTCOME_BAD, "certificate: %s", error);
	else if (strcmp(word, "wrong name") == 0)
		probe_report(
			p, CHECK_OUTCOME_BAD, "certificate: wrong name, expected %s", target->name);
	else
		probe_report(p, CHECK_OUTCOME_BAD, "certificate: %s", word);
}

/* OpenSSL's texts start with numbers: "error:0A000458:SSL routines::tlsv1 unrecognized name". */
static const char *without_numbers(const char *error)
{
	const char *at = strstr(error, "error:"), *end = at ? strrchr(at, ':') : NULL;

	return end && end[1] ? end + 1 : error;
}

static void report_system(
	struct probe *p, CURL *easy, const char *what, const char *peer, const char *error)
{
	long errnum = 0;

	(void)curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &errnum);
	if (errnum > 0)
		probe_report(p, probe_outcome_of_errno((int)errnum), "%s%s: %s", what, peer,
			strerror((int)errnum));
	else
		probe_report(p, CHECK_OUTCOME_BAD, "%s%s: %s", what, peer, error);
}

static void report_connect(
	struct probe *p, CURL *easy, const struct http_target *target, const char *error)
{
	long errnum = 0;

	(void)curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &errnum);
	if (errnum == EADDRNOTAVAIL && target->literal.family &&
		peer_has_no_source(&target->literal))
		probe_report(p, CHECK_OUTCOME_BAD, "connect to %s: " PEER_NO_SOURCE, target->peer);
	else
		report_system(p, easy, "connect to ", target->peer, error);
}

void http_report_failure(struct probe *p, CURL *easy, const struct http_target *target,
	CURLcode result, int errnum, const char *error)
{
	if (!*error)
		error = curl_easy_strerror(result);
	if (errnum != 0) {
		probe_report(p, probe_outcome_of_errno(errnum), "socket: %s", strerror(errnum));
		return;
	}
	switch ((int)result) {
	case CURLE_COULDNT_CONNECT:
		report_connect(p, easy, target, error);
		break;
	case CURLE_OUT_OF_MEMORY:
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "%s", strerror(ENOMEM));
		break;
	case CURLE_SSL_CACERT_BADFILE:
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "cannot read the issuers: %s", error);
		break;
	case CURLE_PEER_FAILED_VERIFICATION:
		report_certificate(p, easy, target, error);
		break;
	case CURLE_SSL_CONNECT_ERROR:
		probe_report(p, CHECK_OUTCOME_BAD, "TLS: %s", without_numbers(error));
		break;
	case CURLE_GOT_NOTHING:
		probe_report(p, CHECK_OUTCOME_BAD, "the connection was closed without an answer");
		break;
	case CURLE_PARTIAL_FILE:
		probe_report(p, CHECK_OUTCOME_BAD, "the connection was closed within the body");
		break;
	case CURLE_UNSUPPORTED_PROTOCOL:
		probe_report(p, CHECK_OUTCOME_BAD, "the answer is not HTTP");
		break;
	case CURLE_SEND_ERROR:
		report_system(p, easy, "send", "", error);
		break;
	case CURLE_RECV_ERROR:
		report_system(p, easy, "receive", "", error);
		break;
	default: /* libcurl's, not ours */
		probe_report(p, CHECK_OUTCOME_BAD, "%s", error);
		break;
	}
}
