/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a server: its clock of the day is off by the seconds in the file that
 * CKT_CLOCK_STEP names, which a test changes.  The monotonic clock is not.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t step(void)
{
	char text[32] = "";
	const char *path = getenv("CKT_CLOCK_STEP");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	return n > 0 ? (time_t)strtoll(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	int result = (int)syscall(SYS_clock_gettime, id, now);
	if (!result && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		now->tv_sec += step();
	return result;
}

time_t time(time_t *ret)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *ret, void *zone)
{
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*ret = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}
