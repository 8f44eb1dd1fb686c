// An auditing library (LD_AUDIT): counts the bindings that it is asked about, allocates for each in its own namespace, and
// lets all be as they are. ENTER: it also asks to see calls through late bound places.
#include <link.h>
#include <stdlib.h>

static unsigned long bindings;

unsigned int la_version(unsigned int version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

unsigned int la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie) {
  (void)map, (void)namespace, (void)cookie;
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to, unsigned int *flags,
                       const char *name) {
  (void)index, (void)from, (void)to, (void)flags, (void)name;
  bindings++;
  void *volatile block = malloc(32);
  free(block);
  return symbol->st_value;
}

#ifdef ENTER
Elf64_Addr la_x86_64_gnu_pltenter(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to,
                                  La_x86_64_regs *registers, unsigned int *flags, const char *name, long *frame) {
  (void)index, (void)from, (void)to, (void)registers, (void)flags, (void)name;
  *frame = 256;
  return symbol->st_value;
}

unsigned int la_x86_64_gnu_pltexit(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to,
                                   const La_x86_64_regs *in, La_x86_64_retval *out, const char *name) {
  (void)symbol, (void)index, (void)from, (void)to, (void)in, (void)out, (void)name;
  return 0;
}
#endif
