/* What CuPy's fused kernels use of cooperative groups. Such a kernel is launched as one block (driver.c), so all threads of
 * the grid meet at the block's barrier. */
#pragma once

namespace cooperative_groups {
struct grid_group {
};
static grid_group this_grid() { return {}; }
static void sync(const grid_group &) { __syncthreads(); }
} // namespace cooperative_groups
