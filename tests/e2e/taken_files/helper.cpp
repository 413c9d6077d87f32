// A library that lies beside the plugin which needs it.
extern "C" __attribute__((visibility("default"))) int pace_of_helper() { return BUILD; }
