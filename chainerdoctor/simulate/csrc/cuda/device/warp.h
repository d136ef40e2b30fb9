/* What the threads of a warp exchange: shuffles and votes. Every value goes through a slot of its lane. */
#pragma once

static unsigned char sim_slot[SIM_MOST_THREADS][16];

template <class T> static T sim_from_lane(T mine, int lane, int width)
{
    static_assert(sizeof(T) <= sizeof sim_slot[0], "a shuffle moves at most 16 bytes");
    unsigned own = sim_self % 32, group = own / unsigned(width) * unsigned(width);
    memcpy(sim_slot[sim_self], &mine, sizeof mine);
    __syncwarp();
    T theirs = mine;
    unsigned from = group + unsigned(lane);
    if (lane >= 0 && lane < width && from < sim_warp_size())
        memcpy(&theirs, sim_slot[sim_warp_first() + from], sizeof theirs);
    __syncwarp();
    return theirs;
}
template <class T> static T __shfl_sync(unsigned, T value, int lane, int width = 32)
{
    return sim_from_lane(value, ((lane % width) + width) % width, width);
}
/* Beyond the group's ends a lane keeps its own value. */
template <class T> static T __shfl_up_sync(unsigned, T value, unsigned delta, int width = 32)
{
    return sim_from_lane(value, int(sim_self % 32) % width - int(delta), width);
}
template <class T> static T __shfl_down_sync(unsigned, T value, unsigned delta, int width = 32)
{
    return sim_from_lane(value, int(sim_self % 32) % width + int(delta), width);
}
template <class T> static T __shfl_xor_sync(unsigned, T value, int mask, int width = 32)
{
    return sim_from_lane(value, (int(sim_self % 32) % width) ^ mask, width);
}

static unsigned __ballot_sync(unsigned mask, int predicate)
{
    sim_slot[sim_self][0] = predicate != 0;
    __syncwarp();
    unsigned votes = 0;
    for (unsigned i = 0; i < sim_warp_size(); i++)
        if (!sim_ended[sim_warp_first() + i] && sim_slot[sim_warp_first() + i][0])
            votes |= 1u << i;
    __syncwarp();
    return votes & mask;
}
static unsigned __activemask()
{
    unsigned mask = 0;
    for (unsigned i = 0; i < sim_warp_size(); i++)
        mask |= unsigned(!sim_ended[sim_warp_first() + i]) << i;
    return mask;
}
static int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
