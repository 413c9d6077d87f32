/* assay_report.h - reports the steps of a program in C or C++ to `assay run`, whose plugin `command` runs it. Without
 * assay the program runs as before.
 *
 *   while (assay_step(100)) {              100: the number of steps where nobody measures
 *     assay_begin("forward");
 *     ...
 *     assay_end("forward");
 *     assay_metric("loss", loss, "nats", "lower");
 *   }
 *   assay_result("accuracy", accuracy, "", "higher");
 *
 * How many steps there are, and which of them are measured, is the experiment's to say. A step lasts from the answer to
 * its question until the next question, on the clock of assay: wait for a device before assay_step and assay_end, or
 * what it has in flight is not in them. What stands before the loop is set-up.
 *
 * C99 and C++11, POSIX; include it in one file of the program, and use it from one thread. docs/command.md has the
 * lines that it writes. */
#ifndef ASSAY_REPORT_H
#define ASSAY_REPORT_H
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct {
  int is_open, fd; /* fd: -1 where the program runs alone */
  int is_whole, is_measured, is_busy;
  long steps;
} assay_line;

static int assay_fd(void);

static void assay_say(const char* line, size_t size) {
  const int fd = assay_fd();
  while (fd >= 0 && size > 0) {
    const ssize_t written = write(fd, line, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      fprintf(stderr, "assay is gone\n");
      exit(1);
    }
    line += written;
    size -= (size_t)written;
  }
}

static int assay_fd(void) {
  if (!assay_line.is_open) {
    const char* text = getenv("ASSAY_FD");
    assay_line.is_open = 1;
    assay_line.fd = text && *text ? atoi(text) : -1;
    text = getenv("ASSAY_WAITING");
    assay_line.is_busy = text && strcmp(text, "busy") == 0;
    assay_say("assay 1\n", 8);
  }
  return assay_line.fd;
}

/* Reads the answer, or the next part of it. Where the program is to wait busily it asks again and again whether it has
 * come, for 20 ms of the processor's time: who has slept feeds a GPU later. */
static inline size_t assay_hear(char* answer, size_t room) {
  clock_t begin = 0;
  int asks = assay_line.is_busy;
  unsigned long tries;
  for (tries = 1;; ++tries) {
    const ssize_t got = asks ? recv(assay_line.fd, answer, room, MSG_DONTWAIT) : read(assay_line.fd, answer, room);
    if (got > 0) return (size_t)got;
    if (got == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) {
      fprintf(stderr, "assay is gone\n");
      exit(1);
    }
    /* The clock is a call to the kernel, and is read seldom. */
    if (asks && tries == 64) begin = clock();
    if (asks && tries % 64 == 0) asks = clock() - begin < CLOCKS_PER_SEC / 50;
  }
}

/* Ends the step before, and says whether there is another one. `alone`: so many where nobody measures. */
static inline int assay_step(long alone) {
  char answer[64];
  size_t size = 0;
  if (assay_fd() < 0 || assay_line.is_whole) return assay_line.steps++ < alone;
  assay_say("step\n", 5);
  do {
    size += assay_hear(answer + size, sizeof answer - 1 - size); /* of one answer: no other follows unasked */
  } while (answer[size - 1] != '\n' && size + 1 < sizeof answer);
  --size;
  answer[size] = '\0';
  assay_line.is_measured = strncmp(answer, "measure", 7) == 0;
  if (strcmp(answer, "whole") == 0) {
    assay_line.is_whole = 1;
    return assay_line.steps++ < alone;
  }
  return strcmp(answer, "end") != 0;
}

/* Whether the step that is going on is one of those that count, and not of the warm-up. */
static inline int assay_is_measured(void) { return assay_line.is_measured; }

static inline void assay_words(const char* verb, const char* name) {
  char line[256];
  const int size = snprintf(line, sizeof line, "%s %s\n", verb, name);
  if (size > 0 && (size_t)size < sizeof line) assay_say(line, (size_t)size);
}
/* The marks of a phase. Phases may nest, and may occur several times in a step. */
static inline void assay_begin(const char* phase) { assay_words("begin", phase); }
static inline void assay_end(const char* phase) { assay_words("end", phase); }

static inline void assay_figure(const char* verb, const char* name, double value, const char* unit,
                                const char* better) {
  char line[256];
  const int size =
      snprintf(line, sizeof line, "%s %s %.17g %s %s\n", verb, name, value, unit && *unit ? unit : "-", better);
  if (size > 0 && (size_t)size < sizeof line) assay_say(line, (size_t)size);
}
/* A figure of the step that is going on, and one of the case as a whole. `better`: "lower", "higher" or "". */
static inline void assay_metric(const char* name, double value, const char* unit, const char* better) {
  assay_figure("metric", name, value, unit, better);
}
static inline void assay_result(const char* name, double value, const char* unit, const char* better) {
  assay_figure("result", name, value, unit, better);
}

#endif
