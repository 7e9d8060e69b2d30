/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes: loops, branches and choices whose conditions kernels set, in each other; bodies built, captured and updated. */
#include "phase.h"

#define PAIRS 256

/* One step of Euclid's for every pair; *more: whether any goes on. */
__global__ void euclid(unsigned *a, unsigned *b, unsigned *more)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, rest;

	if (!b[i])
		return;
	rest = a[i] % b[i];
	a[i] = b[i];
	b[i] = rest;
	if (rest)
		atomicOr(more, 1u);
}

__global__ void decide(cudaGraphConditionalHandle handle, const unsigned *value)
{
	cudaGraphSetConditional(handle, *value);
}

/* n, steps, largest */
__global__ void odd_or_even(cudaGraphConditionalHandle branch, const unsigned *state)
{
	cudaGraphSetConditional(branch, state[0] & 1);
}

__global__ void triple(unsigned *state)
{
	state[0] = 3 * state[0] + 1;
	if (state[0] > state[2])
		state[2] = state[0];
}

__global__ void halve(unsigned *state)
{
	state[0] /= 2;
}

__global__ void count_step(cudaGraphConditionalHandle loop, unsigned *state)
{
	state[1]++;
	cudaGraphSetConditional(loop, state[0] != 1);
}

/* A handle inside of a structure, behind something else. */
struct machine {
	unsigned length;
	cudaGraphConditionalHandle choice, loop;
	const unsigned *code;
	unsigned *registers;		/* accumulator, counter */
};

__global__ void fetch(machine m)
{
	cudaGraphSetConditional(m.choice, m.code[m.registers[1]]);
}

__global__ void advance(machine m)
{
	cudaGraphSetConditional(m.loop, ++m.registers[1] < m.length);
}

__global__ void operate(unsigned *registers, unsigned factor, unsigned summand)
{
	registers[0] = registers[0] * factor + summand;
}

static cudaGraphNode_t kernel_node(cudaGraph_t graph, cudaGraphNode_t after, void *function, void **params, unsigned blocks, unsigned threads)
{
	cudaGraphNode_t node;
	cudaKernelNodeParams p = {};

	p.func = function;
	p.gridDim = dim3(blocks);
	p.blockDim = dim3(threads);
	p.kernelParams = params;
	CHECK(cudaGraphAddKernelNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &p));
	return node;
}

static cudaGraphNode_t conditional_node(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
					unsigned size, cudaGraph_t **ret_bodies)
{
	cudaGraphNode_t node;
	cudaGraphNodeParams p = {};

	p.type = cudaGraphNodeTypeConditional;
	p.conditional.handle = handle;
	p.conditional.type = type;
	p.conditional.size = size;
	CHECK(cudaGraphAddNode(&node, graph, after ? &after : NULL, NULL, after ? 1 : 0, &p));
	*ret_bodies = p.conditional.phGraph_out;
	return node;
}

static cudaGraphConditionalHandle handle_of(cudaGraph_t graph, unsigned value)
{
	cudaGraphConditionalHandle handle;

	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, value, cudaGraphCondAssignDefault));
	return handle;
}

/* ---- Greatest common divisors: a loop whose body is captured */

static unsigned host_a[PAIRS], host_b[PAIRS], seen_a[PAIRS];
static unsigned *dev_a, *dev_b, *dev_more, *pinned;

static void fill_pairs(unsigned seed)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		host_a[i] = random_u32(&seed) % 100000 + 1;
		host_b[i] = random_u32(&seed) % 100000;
	}
	CHECK(cudaMemcpy(dev_a, host_a, sizeof(host_a), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_b, host_b, sizeof(host_b), cudaMemcpyHostToDevice));
}

static void check_pairs()
{
	unsigned wrong = 0;

	CHECK(cudaMemcpy(seen_a, dev_a, sizeof(seen_a), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < PAIRS; i++) {
		unsigned a = host_a[i], b = host_b[i];
		while (b) {
			unsigned rest = a % b;
			a = b;
			b = rest;
		}
		wrong += seen_a[i] != a;
	}
	EXPECT(wrong == 0);
	print_checksum("divisors", seen_a, sizeof(seen_a));
}

static cudaGraphExec_t make_divisors(cudaStream_t s)
{
	cudaGraph_t graph, captured, *bodies;
	cudaGraphExec_t exec;
	cudaGraphConditionalHandle loop;

	CHECK(cudaGraphCreate(&graph, 0));
	loop = handle_of(graph, 1);
	conditional_node(graph, NULL, loop, cudaGraphCondTypeWhile, 1, &bodies);
	CHECK(cudaStreamBeginCaptureToGraph(s, bodies[0], NULL, NULL, 0, cudaStreamCaptureModeRelaxed));
	CHECK(cudaMemsetAsync(dev_more, 0, 4, s));
	euclid<<<PAIRS / 64, 64, 0, s>>>(dev_a, dev_b, dev_more);
	/* Once for every round: the last one's stays. */
	CHECK(cudaMemcpyAsync(pinned, dev_more, 4, cudaMemcpyDeviceToHost, s));
	decide<<<1, 1, 0, s>>>(loop, dev_more);
	CHECK(cudaStreamEndCapture(s, &captured));
	EXPECT(captured == bodies[0]);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	EXPECT_ERROR(cudaGraphInstantiate(&exec, graph, 0), cudaErrorNotSupported);
	(void)cudaGetLastError();
	CHECK(cudaGraphDestroy(graph));
	return exec;
}

/* ---- Collatz: a branch in a loop */

static unsigned *state;

static cudaGraphExec_t make_collatz()
{
	cudaGraph_t graph, *body, *branches;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;

	CHECK(cudaGraphCreate(&graph, 0));
	cudaGraphConditionalHandle loop = handle_of(graph, 1), branch;
	conditional_node(graph, NULL, loop, cudaGraphCondTypeWhile, 1, &body);
	branch = handle_of(body[0], 0);
	void *branch_params[] = {&branch, &state}, *loop_params[] = {&loop, &state}, *state_params[] = {&state};
	node = kernel_node(body[0], NULL, (void *)odd_or_even, branch_params, 1, 1);
	node = conditional_node(body[0], node, branch, cudaGraphCondTypeIf, 2, &branches);
	kernel_node(branches[0], NULL, (void *)triple, state_params, 1, 1);
	kernel_node(branches[1], NULL, (void *)halve, state_params, 1, 1);
	kernel_node(body[0], node, (void *)count_step, loop_params, 1, 1);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	return exec;
}

static void run_collatz(cudaGraphExec_t exec, cudaStream_t s, unsigned n)
{
	unsigned start[3] = {n, 0, n}, got[3], steps = 0, largest = n;

	CHECK(cudaMemcpyAsync(state, start, sizeof(start), cudaMemcpyHostToDevice, s));
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaMemcpyAsync(got, state, sizeof(got), cudaMemcpyDeviceToHost, s));
	CHECK(cudaStreamSynchronize(s));
	for (unsigned k = n; k != 1; steps++) {
		k = k & 1 ? 3 * k + 1 : k / 2;
		if (k > largest)
			largest = k;
	}
	EXPECT(got[0] == 1 && got[1] == steps && got[2] == largest);
	printf("from %u: %u steps, up to %u\n", n, got[1], got[2]);
}

/* ---- A machine: a choice of four in a loop, one of them kept in the host's hands */

static unsigned *code, *registers;

struct machine_graph {
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t operations[4];
};

static cudaGraph_t draw_machine(struct machine_graph *m, unsigned length, const unsigned factors[4], const unsigned summands[4])
{
	cudaGraph_t graph, *body, *choices;
	cudaGraphNode_t node;
	machine parts = {};

	CHECK(cudaGraphCreate(&graph, 0));
	parts.length = length;
	parts.loop = handle_of(graph, 1);
	parts.choice = handle_of(graph, 0);
	parts.code = code;
	parts.registers = registers;
	conditional_node(graph, NULL, parts.loop, cudaGraphCondTypeWhile, 1, &body);
	void *params[] = {&parts};
	node = kernel_node(body[0], NULL, (void *)fetch, params, 1, 1);
	node = conditional_node(body[0], node, parts.choice, cudaGraphCondTypeSwitch, 4, &choices);
	for (unsigned i = 0; i < 4; i++) {
		unsigned factor = factors[i], summand = summands[i];
		void *operation[] = {&registers, &factor, &summand};
		m->operations[i] = kernel_node(choices[i], NULL, (void *)operate, operation, 1, 1);
	}
	kernel_node(body[0], node, (void *)advance, params, 1, 1);
	return graph;
}

static void run_machine(const struct machine_graph *m, cudaStream_t s, const unsigned *program, unsigned length, const unsigned factors[4],
			const unsigned summands[4])
{
	unsigned got[2], expected = 1;

	/* Operation 4 and beyond is none. */
	for (unsigned i = 0; i < length; i++)
		if (program[i] < 4)
			expected = expected * factors[program[i]] + summands[program[i]];
	unsigned start[2] = {1, 0};
	CHECK(cudaMemcpyAsync(code, program, length * 4, cudaMemcpyHostToDevice, s));
	CHECK(cudaMemcpyAsync(registers, start, sizeof(start), cudaMemcpyHostToDevice, s));
	CHECK(cudaGraphLaunch(m->exec, s));
	CHECK(cudaMemcpyAsync(got, registers, sizeof(got), cudaMemcpyDeviceToHost, s));
	CHECK(cudaStreamSynchronize(s));
	EXPECT(got[0] == expected && got[1] == length);
	printf("machine: %u after %u\n", got[0], got[1]);
}

/* ---- Memory of the host in a body that may not run */

static void host_copies(cudaStream_t s)
{
	cudaGraph_t graph, *bodies;
	cudaGraphExec_t exec;
	unsigned *values, *wish, zero = 0, seven = 7;

	CHECK(cudaMalloc(&values, 8));
	CHECK(cudaMalloc(&wish, 4));
	CHECK(cudaGraphCreate(&graph, 0));
	cudaGraphConditionalHandle handle = handle_of(graph, 0);
	void *params[] = {&handle, &wish};
	conditional_node(graph, kernel_node(graph, NULL, (void *)decide, params, 1, 1), handle, cudaGraphCondTypeIf, 1, &bodies);
	cudaGraphNode_t in, out;
	CHECK(cudaGraphAddMemcpyNode1D(&in, bodies[0], NULL, 0, values, pinned, 4, cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddMemcpyNode1D(&out, bodies[0], &in, 1, pinned + 1, values, 4, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned i = 0; i < 4; i++) {
		pinned[0] = 100 + i;
		pinned[1] = 50 + i;
		CHECK(cudaMemcpy(wish, i % 2 ? &seven : &zero, 4, cudaMemcpyHostToDevice));
		CHECK(cudaGraphLaunch(exec, s));
		CHECK(cudaStreamSynchronize(s));
		EXPECT(pinned[0] == 100 + i && pinned[1] == (i % 2 ? 100 + i : 50 + i));
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(values));
	CHECK(cudaFree(wish));
}

int main()
{
	static const unsigned program[] = {0, 1, 2, 3, 4, 2, 1, 0, 9, 3, 3, 2};
	unsigned factors[4] = {3, 1, 5, 7}, summands[4] = {0, 11, 2, 1};
	const unsigned length = sizeof(program) / sizeof(*program);
	struct machine_graph m, other;
	cudaStream_t s;
	cudaGraphExecUpdateResultInfo info;

	CHECK(cudaStreamCreate(&s));
	CHECK(cudaMalloc(&dev_a, sizeof(host_a)));
	CHECK(cudaMalloc(&dev_b, sizeof(host_b)));
	CHECK(cudaMalloc(&dev_more, 4));
	CHECK(cudaMalloc(&state, 12));
	CHECK(cudaMalloc(&code, sizeof(program)));
	CHECK(cudaMalloc(&registers, 8));
	CHECK(cudaMallocHost(&pinned, 64));

	cudaGraphExec_t divisors = make_divisors(s), collatz = make_collatz();
	m.graph = draw_machine(&m, length, factors, summands);
	CHECK(cudaGraphInstantiate(&m.exec, m.graph, 0));
	fill_pairs(1);
	pinned[0] = 99;
	CHECK(cudaGraphLaunch(divisors, s));
	CHECK(cudaStreamSynchronize(s));
	EXPECT(pinned[0] == 0);
	check_pairs();
	run_collatz(collatz, s, 6);
	run_machine(&m, s, program, length, factors, summands);

	/* A kernel of a body set anew in the executable graph: what a restore makes has it too. */
	factors[2] = 9;
	summands[2] = 4;
	void *operation[] = {&registers, &factors[2], &summands[2]};
	cudaKernelNodeParams p = {};
	p.func = (void *)operate;
	p.gridDim = p.blockDim = dim3(1);
	p.kernelParams = operation;
	CHECK(cudaGraphExecKernelNodeSetParams(m.exec, m.operations[2], &p));
	host_copies(s);
	/* Under way when the session is saved. */
	fill_pairs(2);
	CHECK(cudaGraphLaunch(divisors, s));
	phase();

	CHECK(cudaStreamSynchronize(s));
	check_pairs();
	fill_pairs(3);
	CHECK(cudaGraphLaunch(divisors, s));
	CHECK(cudaStreamSynchronize(s));
	check_pairs();
	run_collatz(collatz, s, 27);
	run_machine(&m, s, program, length, factors, summands);

	/* All of it anew: other parameters, another length, other handles. */
	summands[0] = 13;
	cudaGraph_t update = draw_machine(&other, length - 3, factors, summands);
	cudaError_t updated = cudaGraphExecUpdate(m.exec, update, &info);
	printf("update: %s, %d\n", cudaGetErrorName(updated), (int)info.result);
	if (updated == cudaSuccess)
		run_machine(&m, s, program, length - 3, factors, summands);
	(void)cudaGetLastError();
	CHECK(cudaGraphDestroy(update));
	host_copies(s);
	CHECK(cudaGraphExecDestroy(m.exec));
	CHECK(cudaGraphDestroy(m.graph));
	CHECK(cudaGraphExecDestroy(divisors));
	CHECK(cudaGraphExecDestroy(collatz));
	return finish();
}
