#ifndef REDSHANK_EVENTS_KINDS_H
#define REDSHANK_EVENTS_KINDS_H
/*
 * The kinds of events: X(NAME, WORD, MESSAGE_ID). The word is `event` in JSON and REDSHANK_EVENT in
 * the journal; the id is the journal's MESSAGE_ID, which systemd/package/redshank.catalog explains
 * (systemd.journal-fields(7), https://systemd.io/CATALOG). A new kind gets a new random id
 * (`journalctl --new-id128`), an entry there, and a row in docs/status.md; unit-events-catalog
 * compares the three. A word and an id never change their meaning.
 */
#define EVENT_KINDS(X)                                                                    \
	X(AGENT_STARTED, "agent_started", "4c3b6951f51cfe9c78686b340c88c102")             \
	X(AGENT_STOPPING, "agent_stopping", "f89bb001a5684dc92b200f7cd55f3e31")           \
	X(AGENT_LEFT, "agent_left", "e8b6e135f8eef85f8f23a602c29a8ae2")                   \
	X(AGENT_TROUBLE, "agent_trouble", "2457b6d83cfe645824c881c72519a41e")             \
	X(CONFIG_LOADED, "config_loaded", "eb5fee2558c10532fef1495415ea5c01")             \
	X(CONFIG_REFUSED, "config_refused", "026b91dab00417341961fbb0fb68d89f")           \
	X(CONFIG_PROBLEM, "config_problem", "4e31db397a55726178261a096e98c547")           \
	X(CHECK, "check", "969629e231183cc7648e1a1476950f61")                             \
	X(SERVICE, "service", "6cf69794a580e8fe85cb5b1ced92af10")                         \
	X(PREFIX, "prefix", "449a969af643b7e2048b5f32b15df812")                           \
	X(DRAIN, "drain", "d455becaa300fc8831be74c70898f2fe")                             \
	X(UNDRAIN, "undrain", "5cdab5d0086d37c9d0ce4fd4afdebbf2")                         \
	X(WEIGHT, "weight", "ddcaf0a859b787702dc4d1404913e41b")                           \
	X(ANNOUNCE, "announce", "7152c4d03388a38a2532a9a3723e9953")                       \
	X(FREEZE, "freeze", "57a63cbc7f7c2d1d0be338026edb37f4")                           \
	X(THAW, "thaw", "c63282d0c9ea73157f5ba4f695917f68")                               \
	X(CHECK_NOW, "check-now", "3c89f9baa50eadf336b2096cf666797c")                     \
	X(RELOAD, "reload", "734c0deb2fe0090123cca28a7435a275")                           \
	X(WORD_ENDED, "word_ended", "49c57fa0fca2c23604998252168b90ae")                   \
	X(WORD_KEPT, "word_kept", "b565ad07c8f01fcd7cc5c9b24de8bae1")                     \
	X(STATE_TROUBLE, "state_trouble", "ae05c99719017fc314463b78d9098eb0")             \
	X(HOOK, "hook", "a1fa4b35bca445619ededae79658c70d")                               \
	X(BIRD_CONNECTED, "bird_connected", "b621c996fd19683e7262cbd3ead028fe")           \
	X(BIRD_AWAY, "bird_away", "da700b928a49dfa08bc907691473041c")                     \
	X(BIRD_RESTARTED, "bird_restarted", "8135c59fd0a1258ae0c075c5a3026c30")           \
	X(BIRD_RECONFIGURED, "bird_reconfigured", "5ce1e215febb797febc910d138ea28a4")     \
	X(BIRD_REFUSED, "bird_refused", "995971f6edc4496b5d3f7b26df1222fc")               \
	X(BIRD_ACCEPTED, "bird_accepted", "24c87a3a6da7672a5a3e37409e15bd01")             \
	X(BIRD_TROUBLE, "bird_trouble", "69107c042ae6e3373e3a47267f6f0f65")               \
	X(BIRD_LATE, "bird_late", "57c744828ace2cb70ed6342207b4fbce")                     \
	X(BIRD_WARNING, "bird_warning", "303ea1b7dc083014adb619dde80881be")               \
	X(BIRD_WARNING_OVER, "bird_warning_over", "962484e558666676d1ec5664e449b18a")     \
	X(SESSION_UP, "session_up", "47b635b5630b17e67f436d92e0697b0c")                   \
	X(SESSION_DOWN, "session_down", "734a7630646539983c2b12d56511e779")               \
	X(DRIFT, "drift", "edeffda317bb7c7a87dd6e1a20a62f7e")                             \
	X(FOREIGN_EXPORT, "foreign_export", "b429015fa037931b4c1c4943b99f6eed")           \
	X(FOREIGN_EXPORT_OVER, "foreign_export_over", "dd261db3d2a3eb0c46cb8d48aa0abbc4") \
	X(REPAIR, "repair", "1b627bee376c156687f031fff0b0ec25")                           \
	X(REPAIR_DONE, "repair_done", "8cc8eb04ec91db563291ca6cc7941221")                 \
	X(REPAIR_FAILED, "repair_failed", "02854fd2e8511abb54f6595e3e079446")             \
	X(REPAIR_LEFT, "repair_left", "3802849d180f8789d5cb7c8744b50fb4")                 \
	X(NEIGHBOUR_SILENT, "neighbour_silent", "e79fd480aed151340e12fd10ee87634c")       \
	X(NEIGHBOUR_BACK, "neighbour_back", "94f5e89daf3d0a40a132f809d26da88e")           \
	X(NEIGHBOURS, "neighbours", "ec82891c7fb9b92245d9bc906a141865")                   \
	X(NEIGHBOUR_TROUBLE, "neighbour_trouble", "36d7a0c1cd2f57b389519d0239f9673f")     \
	X(SHED, "shed", "972d3f7b20680fb8d91fff4f45d94e5d")                               \
	X(UNSHED, "unshed", "b570e064ec884a453a90f47a2c6b1588")                           \
	X(PREFIX_SHED, "prefix_shed", "94a0d4191533c98ad74d7f790d438a16")                 \
	X(PREFIX_RETURNED, "prefix_returned", "d66b0e7f3ae8ecc1c26ebe3d9303ea87")         \
	X(SHED_ALARM, "shed_alarm", "541c7d08ab35f6024a520402d5662743")                   \
	X(GRANT, "grant", "19c12977d6f5e72ccf088e93df336d88")                             \
	X(GRANT_REFUSED, "grant_refused", "80e9262cfc8f8c258e84428d80775370")             \
	X(ADDRESS_ADDED, "address_added", "a1a1d2a4a8647e1760e469198a421a03")             \
	X(ADDRESS_REMOVED, "address_removed", "e768c8d4ddd22be9dc7322efd2e0aa40")         \
	X(ADDRESS_TROUBLE, "address_trouble", "35cd5c2f4ac9655475897f03da2d51f6")         \
	X(FRAGMENT_REPAIRED, "fragment_repaired", "1225b5d75a4a310c1414902e3488f463")     \
	X(FRAGMENT_REMOVED, "fragment_removed", "02e0f391a04054356ae1d1d0ccf40241")       \
	X(FRAGMENT_STRANGER, "fragment_stranger", "9d22a5a198a6ec63cf776aebedc4b0cb")     \
	X(FRAGMENT_UNWRITABLE, "fragment_unwritable", "6dc9c07e1dfe7968388a50608ffb5e4d") \
	X(FRAGMENT_WRITABLE, "fragment_writable", "419bffc4b31181f8179daf4e79f68c4f")

enum event_kind {
#define X(name, word, id) EVENT_##name,
	EVENT_KINDS(X)
#undef X
};

#endif
