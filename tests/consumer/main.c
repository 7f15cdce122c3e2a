/* The same program in C: there is no broker where it looks. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gmb/c_api.h"

int main(void) {
  uint32_t major = 0;
  uint32_t minor = 0;
  gmb_abi_version(&major, &minor);
  if (major != GMB_ABI_MAJOR || minor < GMB_ABI_MINOR) {
    puts("the library is not the one of the header");
    return 1;
  }
  if (strcmp(gmb_version(), GMB_VERSION_STRING) != 0) {
    puts("the library is of another version than the header");
    return 1;
  }

  gmb_client_options options;
  gmb_client_options_init(&options, sizeof options);
  options.socket_dir = "/nonexistent/gmb";
  options.connect_timeout_ms = 1000;
  gmb_client* client = NULL;
  gmb_error* error = gmb_client_connect(&options, &client);
  if (error == NULL) {
    puts("connected to a broker that is not there");
    gmb_client_close(client);
    return 1;
  }
  const int32_t code = gmb_error_code(error);
  printf("gmb %s: %s\n", gmb_version(), gmb_error_message(error));
  gmb_error_free(error);
  return code == GMB_CODE_UNAVAILABLE ? 0 : 1;
}
