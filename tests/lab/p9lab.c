// p9lab: counts and delays the requests of the guest's 9p client.
//
// Loaded before the measuring starts, it takes the place of the two functions by which the client hands a message to
// the virtio transport. Each message counts once and waits once, whatever it asks; messages of different processes wait
// at the same time, as they would for a distant server.
//
//   /sys/module/p9lab/parameters/requests   messages so far; may be set back to 0
//   /sys/module/p9lab/parameters/delay_us   how long each message waits before it is sent, in microseconds
#include <linux/delay.h>
#include <linux/module.h>
#include <net/9p/9p.h>
#include <net/9p/client.h>
#include <net/9p/transport.h>

// An emulated processor comes back from a sleep some 0.4 ms late; the last part of a delay is watched instead.
#define WATCHED_US 400

static unsigned int requests;
static unsigned int delay_us;
module_param(requests, uint, 0644);
module_param(delay_us, uint, 0644);

static struct p9_trans_module *transport;
static int (*send)(struct p9_client *, struct p9_req_t *);
static int (*send_zero_copy)(struct p9_client *, struct p9_req_t *, struct iov_iter *, struct iov_iter *, int, int, int);

static void count_and_wait(void)
{
	unsigned int us = READ_ONCE(delay_us);
	ktime_t end = ktime_add_us(ktime_get(), us);

	requests++;
	if (us > WATCHED_US)
		usleep_range(us - WATCHED_US, us - WATCHED_US);
	while (ktime_before(ktime_get(), end))
		cond_resched();
}

static int counted_send(struct p9_client *client, struct p9_req_t *request)
{
	count_and_wait();
	return send(client, request);
}

static int counted_send_zero_copy(struct p9_client *client, struct p9_req_t *request, struct iov_iter *in,
				  struct iov_iter *out, int in_length, int out_length, int header_length)
{
	count_and_wait();
	return send_zero_copy(client, request, in, out, in_length, out_length, header_length);
}

static int __init p9lab_init(void)
{
	transport = v9fs_get_trans_by_name("virtio");
	if (!transport)
		return -ENODEV;
	send = transport->request;
	send_zero_copy = transport->zc_request;
	transport->request = counted_send;
	transport->zc_request = counted_send_zero_copy;
	return 0;
}
// There is no exit function: a message may be on its way through these functions at any time.
module_init(p9lab_init);
MODULE_DESCRIPTION("Counts and delays 9p requests");
MODULE_LICENSE("GPL");
