/* Rewrites a graph file, in C99. In process or on a server, with progress, until Ctrl-C or 60
 * seconds.
 *
 *   rewrite_graph IN OUT [HOST:PORT]
 *
 *   cc -std=c99 rewrite_graph.c $(pkg-config --cflags --libs spillway) */
#include <stdio.h>
#include <stdlib.h>

#include "spillway/spillway.h"

/* Returns the bytes of a file, which the caller frees; NULL if it cannot be read. */
static char* read_file(const char* path, size_t* size) {
  char* bytes = NULL;
  long length;
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0) {
    rewind(file);
    bytes = malloc((size_t)length + 1);
    *size = bytes == NULL ? 0 : fread(bytes, 1, (size_t)length, file);
    if (*size != (size_t)length) {
      free(bytes);
      bytes = NULL;
    }
  }
  fclose(file);
  return bytes;
}

static int write_file(const char* path, const char* bytes, size_t size) {
  FILE* file = fopen(path, "wb");
  size_t written;
  if (file == NULL) return -1;
  written = fwrite(bytes, 1, size, file);
  return fclose(file) == 0 && written == size ? 0 : -1;
}

static void print_progress(int32_t stage, int64_t done, int64_t total, void* user_data) {
  static const char* const kNames[] = {"?", "sending", "rewriting", "receiving"};
  (void)user_data;
  if (stage < 1 || stage > 3) stage = 0; /* A stage added by a later release. */
  printf("%s %ld of %ld bytes\n", kNames[stage], (long)done, (long)total);
}

int main(int argc, char** argv) {
  size_t size = 0;
  char* graph;
  spillway_client_options* options = NULL;
  spillway_client* client = NULL;
  spillway_call* call = NULL;
  spillway_buffer* rewritten = NULL;
  spillway_status* status;

  if (argc < 3) {
    fprintf(stderr, "Usage: rewrite_graph IN OUT [HOST:PORT]\n");
    return 2;
  }
  graph = read_file(argv[1], &size);
  if (graph == NULL) {
    fprintf(stderr, "%s: cannot be read\n", argv[1]);
    return 1;
  }

  options = spillway_client_options_new();
  call = spillway_call_new();
  status = spillway_client_options_set_target(options, argc > 3 ? argv[3] : "");
  if (status == NULL) status = spillway_client_new(options, &client);
  if (status == NULL) status = spillway_call_set_timeout_ms(call, 60 * 1000);
  if (status == NULL) status = spillway_call_set_progress(call, print_progress, NULL);
  if (status == NULL) {
    /* NULL, 0: the default options. NULL at the end: no report. */
    status = spillway_rewrite_graph(client, graph, size, NULL, 0, call, &rewritten, NULL);
  }
  if (status != NULL) {
    fprintf(stderr, "%s: %s [%s]\n", argv[1], spillway_status_message(status),
            spillway_status_reason(status));
  } else if (write_file(argv[2], spillway_buffer_data(rewritten),
                        spillway_buffer_size(rewritten)) != 0) {
    fprintf(stderr, "%s: cannot be written\n", argv[2]);
  } else {
    printf("%lu bytes -> %lu bytes\n", (unsigned long)size,
           (unsigned long)spillway_buffer_size(rewritten));
    spillway_buffer_free(rewritten);
    rewritten = NULL;
    size = 0; /* Done. */
  }
  spillway_buffer_free(rewritten);
  spillway_call_free(call);
  spillway_client_free(client);
  spillway_client_options_free(options);
  free(graph);
  if (status == NULL && size == 0) return 0;
  spillway_status_free(status);
  return 1;
}
