/* For cppcheck alone (tests/static): what the macros of libraries expand to, as far as it matters,
 * since it reads none of their headers. */
#define json_object_foreach(object, key, value)                           \
	for (key = json_object_iter_key(json_object_iter(object));        \
		key && (value = json_object_iter_value((void *)key)) != 0; \
		key = json_object_iter_key((void *)key))
#define json_array_foreach(array, index, value)                                 \
	for (index = 0; index < json_array_size(array) &&                       \
			(value = json_array_get(array, index)) != 0; index++)
#define mnl_attr_for_each(attr, nlh, offset)              \
	for (attr = mnl_nlmsg_get_payload_offset(nlh, offset); \
		mnl_attr_ok(attr, 1); attr = mnl_attr_next(attr))
