/* Calls each function of the header, from two files. */
#include "heaptally.h"

#ifdef __cplusplus
extern "C"
#endif
    void
    second_file(void);

int main(void)
{
    heaptally_window_begin("w");
    heaptally_thread_window_begin("t");
    heaptally_pause();
    heaptally_resume();
    heaptally_thread_window_end("t");
    second_file();
    heaptally_window_iterations("w", ((uint64_t)1 << 40) + 7);
    heaptally_window_end("w");
    return 0;
}
