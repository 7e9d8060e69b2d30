/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN: convolution forward and backward in f32 and f16, batch norm, an LSTM; twice with one handle, about the mid point.  Algorithms are
 * named, and deterministic.
 */
#include "common.h"

#include <cudnn.h>
#include <cuda_fp16.h>

enum { BATCH = 4, IN = 8, OUT = 16, SIZE = 14 };

template <typename T> static std::vector<T> values(size_t count, uint32_t seed)
{
	std::vector<T> v;
	for (float f : numbers(count, seed))
		v.push_back(T(f));
	return v;
}

template <typename T> static void convolution(cudnnHandle_t handle, cudnnDataType_t type, const char *name)
{
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t c;
	float one = 1, zero = 0;
	size_t bytes;
	char label[64];
	TRY(cudnnCreateTensorDescriptor(&x));
	TRY(cudnnCreateTensorDescriptor(&y));
	TRY(cudnnCreateFilterDescriptor(&w));
	TRY(cudnnCreateConvolutionDescriptor(&c));
	TRY(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, type, BATCH, IN, SIZE, SIZE));
	TRY(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, type, BATCH, OUT, SIZE, SIZE));
	TRY(cudnnSetFilter4dDescriptor(w, type, CUDNN_TENSOR_NCHW, OUT, IN, 3, 3));
	TRY(cudnnSetConvolution2dDescriptor(c, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
	T *input = device(values<T>(BATCH * IN * SIZE * SIZE, 1)), *filter = device(values<T>(OUT * IN * 9, 2));
	T *output = device<T>(BATCH * OUT * SIZE * SIZE), *data = device<T>(BATCH * IN * SIZE * SIZE), *gradient = device<T>(OUT * IN * 9);

	TRY(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, c, y, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &bytes));
	char *work = device<char>(bytes);
	TRY(cudnnConvolutionForward(handle, &one, x, input, w, filter, c, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, work, bytes, &zero, y, output));
	snprintf(label, sizeof label, "%s forward", name);
	hash(label, output, BATCH * OUT * SIZE * SIZE * sizeof(T));
	CHECK(cudaFree(work));

	TRY(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, w, y, c, x, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, &bytes));
	work = device<char>(bytes);
	TRY(cudnnConvolutionBackwardData(handle, &one, w, filter, y, output, c, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, work, bytes, &zero, x, data));
	snprintf(label, sizeof label, "%s backward data", name);
	hash(label, data, BATCH * IN * SIZE * SIZE * sizeof(T));
	CHECK(cudaFree(work));

	TRY(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x, y, c, w, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, &bytes));
	work = device<char>(bytes);
	TRY(cudnnConvolutionBackwardFilter(handle, &one, x, input, y, output, c, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, work, bytes, &zero, w, gradient));
	snprintf(label, sizeof label, "%s backward filter", name);
	hash(label, gradient, OUT * IN * 9 * sizeof(T));
	CHECK(cudaFree(work));
	TRY(cudnnDestroyTensorDescriptor(x));
	TRY(cudnnDestroyTensorDescriptor(y));
	TRY(cudnnDestroyFilterDescriptor(w));
	TRY(cudnnDestroyConvolutionDescriptor(c));
}

static void batch_norm(cudnnHandle_t handle)
{
	cudnnTensorDescriptor_t x, b;
	float one = 1, zero = 0;
	TRY(cudnnCreateTensorDescriptor(&x));
	TRY(cudnnCreateTensorDescriptor(&b));
	TRY(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, BATCH, IN, SIZE, SIZE));
	TRY(cudnnDeriveBNTensorDescriptor(b, x, CUDNN_BATCHNORM_SPATIAL));
	size_t count = BATCH * IN * SIZE * SIZE;
	float *in = device(numbers(count, 3)), *out = device<float>(count), *scale = device(numbers(IN, 4)), *bias = device(numbers(IN, 5));
	float *mean = device<float>(IN), *variance = device<float>(IN), *saved_mean = device<float>(IN), *saved = device<float>(IN);
	TRY(cudnnBatchNormalizationForwardTraining(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x, in, x, out, b, scale, bias, 1.0, mean, variance, 1e-5,
		saved_mean, saved));
	hash("batch norm", out, count * 4);
	hash("batch norm mean", mean, IN * 4);
	float *dx = device<float>(count), *dscale = device<float>(IN), *dbias = device<float>(IN);
	TRY(cudnnBatchNormalizationBackward(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, x, in, x, out, x, dx, b, scale, dscale, dbias, 1e-5,
		saved_mean, saved));
	hash("batch norm backward", dx, count * 4);
	TRY(cudnnDestroyTensorDescriptor(x));
	TRY(cudnnDestroyTensorDescriptor(b));
}

static void lstm(cudnnHandle_t handle)
{
	enum { INPUT = 16, HIDDEN = 32, STEPS = 5 };
	cudnnDropoutDescriptor_t dropout;
	cudnnRNNDescriptor_t rnn;
	cudnnRNNDataDescriptor_t x, y;
	cudnnTensorDescriptor_t h;
	size_t states, weights, work_bytes, reserve_bytes;
	int lengths[BATCH], dims[] = {1, BATCH, HIDDEN}, strides[] = {BATCH * HIDDEN, HIDDEN, 1};
	float zero = 0;
	for (int &length : lengths)
		length = STEPS;
	TRY(cudnnCreateDropoutDescriptor(&dropout));
	TRY(cudnnDropoutGetStatesSize(handle, &states));
	TRY(cudnnSetDropoutDescriptor(dropout, handle, 0, device<char>(states), states, 7));
	TRY(cudnnCreateRNNDescriptor(&rnn));
	TRY(cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT,
		CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, INPUT, HIDDEN, HIDDEN, 1, dropout, CUDNN_RNN_PADDED_IO_DISABLED));
	TRY(cudnnCreateRNNDataDescriptor(&x));
	TRY(cudnnCreateRNNDataDescriptor(&y));
	TRY(cudnnSetRNNDataDescriptor(x, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, STEPS, BATCH, INPUT, lengths, &zero));
	TRY(cudnnSetRNNDataDescriptor(y, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, STEPS, BATCH, HIDDEN, lengths, &zero));
	TRY(cudnnCreateTensorDescriptor(&h));
	TRY(cudnnSetTensorNdDescriptor(h, CUDNN_DATA_FLOAT, 3, dims, strides));
	TRY(cudnnGetRNNWeightSpaceSize(handle, rnn, &weights));
	TRY(cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_TRAINING, x, &work_bytes, &reserve_bytes));
	float *weight = device(numbers(weights / 4, 9)), *in = device(numbers(STEPS * BATCH * INPUT, 10)), *out = device<float>(STEPS * BATCH * HIDDEN);
	float *state = device<float>(BATCH * HIDDEN), *cell = device<float>(BATCH * HIDDEN);
	char *work = device<char>(work_bytes), *reserve = device<char>(reserve_bytes);
	int *device_lengths = device(std::vector<int>(lengths, lengths + BATCH));
	TRY(cudnnRNNForward(handle, rnn, CUDNN_FWD_MODE_TRAINING, device_lengths, x, in, y, out, h, NULL, state, h, NULL, cell, weights, weight, work_bytes, work,
		reserve_bytes, reserve));
	hash("lstm", out, STEPS * BATCH * HIDDEN * 4);
	float *dx = device<float>(STEPS * BATCH * INPUT), *dw = device<float>(weights / 4);
	TRY(cudnnRNNBackwardData_v8(handle, rnn, device_lengths, y, out, out, x, dx, h, NULL, NULL, NULL, h, NULL, NULL, NULL, weights, weight, work_bytes, work,
		reserve_bytes, reserve));
	hash("lstm backward data", dx, STEPS * BATCH * INPUT * 4);
	TRY(cudnnRNNBackwardWeights_v8(handle, rnn, CUDNN_WGRAD_MODE_ADD, device_lengths, x, in, h, NULL, y, out, weights, dw, work_bytes, work, reserve_bytes,
		reserve));
	hash("lstm backward weights", dw, weights / 4 * 4);
	TRY(cudnnDestroyRNNDescriptor(rnn));
	TRY(cudnnDestroyDropoutDescriptor(dropout));
}

int main()
{
	cudnnHandle_t handle;
	TRY(cudnnCreate(&handle));
	for (int half = 0; half < 2; half++) {
		convolution<float>(handle, CUDNN_DATA_FLOAT, "f32");
		convolution<__half>(handle, CUDNN_DATA_HALF, "f16");
		batch_norm(handle);
		lstm(handle);
		if (!half)
			phase();
	}
	TRY(cudnnDestroy(handle));
	return finish();
}
