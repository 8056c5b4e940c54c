#ifndef REDSHANK_SYSTEM_ADDRESS_CHANGE_H
#define REDSHANK_SYSTEM_ADDRESS_CHANGE_H
/*
 * Adds and removes addresses of this host by rtnetlink (RTM_NEWADDR, RTM_DELADDR;
 * linux/rtnetlink.h). Takes CAP_NET_ADMIN. What comes of it is also told to those who follow the
 * addresses (addresses.h): of IPv4 it is in their queue when this returns, of IPv6 it comes a
 * moment later, since the kernel gives that to a worker (net/ipv6/addrconf.c, addrconf_dad_work()).
 */
#include <stdint.h>

#include "agent/system/addresses.h"

/*
 * The address alone (/32, /128), for ever, with our mark, and without duplicate address detection
 * (IPv6), since of an anycast address there is more than one. 0; -EEXIST when it is there on this
 * interface; -EPERM without the capability; -ENODEV when there is no such interface; or another
 * negative errno.
 */
int address_change_add(const struct address *address, uint32_t interface);

/* 0; -EADDRNOTAVAIL when it is not there; or another negative errno. */
int address_change_remove(const struct addresses_place *place);

#endif
