/*
 * The rules that count, as a script for nft(8). Everything is added, nothing is made anew but the
 * map and the chain, so that counters keep what they have: one that began again would make its
 * prefix's load unknown for ten samples.
 */
#include <string.h>

#include "agent/load/nft.h"

const char *nft_counter_name(const struct prefix *prefix, char buf[NFT_NAME_MAX])
{
	char text[PREFIX_TEXT_MAX];

	(void)snprintf(buf, NFT_NAME_MAX, "v%d_%s", (int)prefix->address.family,
		prefix_format(prefix, text));
	for (char *c = buf; *c; c++)
		if (*c == ':' || *c == '/')
			*c = '_';
	return buf;
}

static bool has_family(const struct config *config, enum address_family family)
{
	for (size_t s = 0; s < config->n_services; s++)
		for (size_t p = 0; p < config->services[s].n_prefixes; p++)
			if (config->services[s].prefixes[p].prefix.address.family == family)
				return true;
	return false;
}

/* The counters of a family, and the map from its prefixes to them. All counters come first: nft
 * moves the elements of one map together. */
static void print_family(const struct config *config, enum address_family family, FILE *to)
{
	char name[NFT_NAME_MAX], text[PREFIX_TEXT_MAX];
	const char *between = " ";

	for (size_t s = 0; s < config->n_services; s++)
		for (size_t p = 0; p < config->services[s].n_prefixes; p++)
			if (config->services[s].prefixes[p].prefix.address.family == family)
				(void)fprintf(to, "add counter inet redshank %s\n",
					nft_counter_name(
						&config->services[s].prefixes[p].prefix, name));
	(void)fprintf(to,
		"add map inet redshank v%d { type ipv%d_addr : counter; flags interval; }\n"
		"flush map inet redshank v%d\n"
		"add element inet redshank v%d {",
		(int)family, (int)family, (int)family, (int)family);
	for (size_t s = 0; s < config->n_services; s++)
		for (size_t p = 0; p < config->services[s].n_prefixes; p++) {
			const struct prefix *prefix = &config->services[s].prefixes[p].prefix;

			if (prefix->address.family != family)
				continue;
			(void)fprintf(to, "%s%s : \"%s\"", between, prefix_format(prefix, text),
				nft_counter_name(prefix, name));
			between = ", ";
		}
	(void)fputs(" }\n", to);
}

static void print_rule(const char *family, int version, bool connections, FILE *to)
{
	(void)fprintf(to, "add rule inet redshank count %scounter name %s daddr map @v%d\n",
		connections ? "ct state new " : "", family, version);
}

bool nft_print(const struct config *config, FILE *to)
{
	const struct config_counting *counting = config->load ? config->load->prefixes : NULL;
	bool connections = counting && counting->type == CONFIG_COUNTING_NFTABLES &&
			   counting->count == CONFIG_COUNT_CONNECTIONS;
	bool v4 = has_family(config, ADDRESS_FAMILY_IPV4);
	bool v6 = has_family(config, ADDRESS_FAMILY_IPV6);

	(void)fprintf(to,
		"# Counts what arrives for each prefix of redshankd; it drops nothing. Made by\n"
		"# redshankd --counters, for nft -f. Run again, it keeps what was counted.\n"
		"add table inet redshank\n");
	if (v4)
		print_family(config, ADDRESS_FAMILY_IPV4, to);
	if (v6)
		print_family(config, ADDRESS_FAMILY_IPV6, to);
	(void)fprintf(to,
		"add chain inet redshank count { type filter hook prerouting priority mangle; "
		"policy accept; }\n"
		"flush chain inet redshank count\n");
	if (v4)
		print_rule("ip", 4, connections, to);
	if (v6)
		print_rule("ip6", 6, connections, to);
	return ferror(to) == 0;
}
