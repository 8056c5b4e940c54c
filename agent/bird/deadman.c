/* The list for the dead man: see deadman.h. */
#include "agent/bird/deadman.h"

#include <errno.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/bird/fragment.h"

#define DEADMAN_NEW ".deadman.new"
#define DEADMAN_TEXT_MAX (1024UL * 1024)

static int deadman_restore(
	const struct config *config, const struct deadman_restore *shed, struct buffer *ret)
{
	const struct config_service *service = &config->services[shed->service];
	char name[NAMES_MAX];

	if (service->on_failure != CONFIG_ON_FAILURE_KEEP || service->n_prefixes > NAMES_SINGLE_MAX)
		return 0;
	return buffer_printf(ret, "restore %s\n",
		names_protocol(
			name, service->name, &service->prefixes[shed->prefix].prefix, false));
}

static int deadman_service(const struct config_service *service, struct buffer *ret)
{
	int r = -EINVAL;

	switch ((enum config_on_failure)service->on_failure) {
	case CONFIG_ON_FAILURE_WITHDRAW:
		r = buffer_printf(ret, "withdraw %s\n", service->name);
		break;
	case CONFIG_ON_FAILURE_KEEP:
		r = buffer_printf(ret, "keep %s\n", service->name);
		break;
	}
	if (r < 0)
		return r;
	switch ((enum config_on_stop)service->on_stop) {
	case CONFIG_ON_STOP_WITHDRAW:
		return buffer_printf(ret, "stopped-withdraw %s\n", service->name);
	case CONFIG_ON_STOP_KEEP:
		return buffer_printf(ret, "stopped-keep %s\n", service->name);
	}
	return -EINVAL;
}

int deadman_render(const struct config *config, const char *socket,
	const struct deadman_restore *sheds, size_t n, struct buffer *ret)
{
	int r;

	if (strchr(socket, '\n')) /* it would be another line */
		return -EINVAL;
	r = buffer_printf(ret, "redshank-deadman 1\nsocket %s\n", socket);
	for (size_t i = 0; i < config->n_services && r >= 0; i++)
		r = deadman_service(&config->services[i], ret);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = deadman_restore(config, &sheds[i], ret);
	return r;
}

int deadman_write(const struct config *config, const char *socket, const char *folder,
	const struct deadman_restore *sheds, size_t n, struct error *ret_error)
{
	_cleanup_buffer_ struct buffer text = {0};
	_cleanup_close_ int fd = -1;
	int r;

	buffer_init(&text, DEADMAN_TEXT_MAX);
	r = deadman_render(config, socket, sheds, n, &text);
	if (r < 0)
		return error_set_errno(ret_error, -r, "bird: list for redshank-deadman");
	r = fragment_open_folder(folder, &fd, ret_error);
	if (r < 0)
		return r;
	r = fragment_place(fd, DEADMAN_NEW, DEADMAN_FILE, buffer_string(&text), text.length);
	if (r < 0)
		return error_set_errno(ret_error, -r, "bird: write %s/" DEADMAN_FILE, folder);
	return 0;
}
