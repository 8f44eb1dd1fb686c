// What all drivers have in common: the window, what plants need, and the probes of a build that asks what is come by.
#pragma once

#include <heaptally.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace planted {
// What is kept is not deleted by the compiler.
inline void keep(void *kept) { __asm__ volatile("" : : "r"(kept) : "memory"); }
} // namespace planted

#ifdef PLANTED_PROBE
#include <execinfo.h>

namespace planted {
inline bool on = false;
inline int below = 0;
inline uint64_t calls[1 << 16];
inline int depths[1 << 16];

inline int depth() {
    void *frames[256];
    return backtrace(frames, 256);
}
} // namespace planted

inline void planted_probe(unsigned id) {
    using namespace planted;
    if (!on || calls[id]++ >= 1000)
        return;
    int own = depth() - below;
    if (calls[id] == 1 || own < depths[id])
        depths[id] = own;
}
#endif

namespace planted {
// Runs `work` so many times in the window `w`; once before it, so that what is made once is made.
template <typename Work> void measure(uint64_t iterations, Work work) {
    work();
#ifdef PLANTED_PROBE
    below = depth();
    on = true;
#endif
    heaptally_window_begin("w");
    // Not unrolled: each iteration has the same addresses.
    __asm__ volatile("" : "+r"(iterations));
    for (uint64_t at = 0; at < iterations; at++)
        work();
    heaptally_window_iterations("w", iterations);
    heaptally_window_end("w");
#ifdef PLANTED_PROBE
    on = false;
    for (unsigned id = 0; id < 1 << 16; id++)
        if (calls[id])
            std::printf("probe %u %llu %d\n", id, (unsigned long long)calls[id], depths[id]);
#endif
}
} // namespace planted
