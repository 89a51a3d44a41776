/* The same with the C API. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/spillway.h"

static int fail(spillway_status* status) {
  fprintf(stderr, "%s [%s]\n", spillway_status_message(status), spillway_status_reason(status));
  spillway_status_free(status);
  return 1;
}

/* A strategy that swaps something also in a graph that fits. */
static const char kOptions[] = "{\"scope\": {}}";

int main(int argc, char** argv) {
  static char bytes[4 << 20];
  size_t size;
  FILE* file;
  spillway_client* client = NULL;
  spillway_buffer* options = NULL;
  spillway_buffer* graph = NULL;
  spillway_buffer* report = NULL;
  spillway_buffer* json = NULL;
  spillway_status* status;
  if (argc < 2 || (file = fopen(argv[1], "rb")) == NULL) return 2;
  size = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  status = spillway_client_new(NULL, &client);
  if (status != NULL) return fail(status);
  status = spillway_message_from_json("RewriteOptions", kOptions, strlen(kOptions), &options);
  if (status != NULL) return fail(status);
  status = spillway_rewrite_graph(client, bytes, size, spillway_buffer_data(options),
                                  spillway_buffer_size(options), NULL, &graph, &report);
  if (status != NULL) return fail(status);
  status = spillway_message_to_json("RewriteReport", spillway_buffer_data(report),
                                    spillway_buffer_size(report), &json);
  if (status != NULL) return fail(status);
  if (strcmp(spillway_version(), "0.1.0") != 0) return 1;
  if (strstr(spillway_buffer_data(json), "\"OUTCOME_REWRITTEN\"") == NULL) return 1;
  printf("bytes: %lu\n", (unsigned long)spillway_buffer_size(graph));
  spillway_buffer_free(json);
  spillway_buffer_free(report);
  spillway_buffer_free(graph);
  spillway_buffer_free(options);
  spillway_client_free(client);
  return 0;
}
