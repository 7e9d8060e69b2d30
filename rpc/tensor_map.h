/* SPDX-License-Identifier: Apache-2.0 */
/* Which of CUDA's three encodings of a tensor map is asked for. */
#pragma once

enum ckt_tensor_map { CKT_TENSOR_MAP_TILED, CKT_TENSOR_MAP_IM2COL, CKT_TENSOR_MAP_IM2COL_WIDE };
