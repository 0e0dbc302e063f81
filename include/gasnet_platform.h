/* The compiler, operating system and processor: the PLATFORM_* macros of GASNet's tools interface,
   derived from predefined macros of the compiler alone. A macro that does not apply is undefined
   and counts as 0 in #if. Included by all other headers; usable alone. */
#ifndef GASNET_PLATFORM_H
#define GASNET_PLATFORM_H

/* Other libraries define the same names with other values for fewer compilers: Open MPI in
   mpi.h. */
#undef PLATFORM_HEADER_VERSION
#undef PLATFORM_COMPILER_UNKNOWN
#undef PLATFORM_COMPILER_GNU
#undef PLATFORM_COMPILER_GNU_C
#undef PLATFORM_COMPILER_GNU_CXX
#undef PLATFORM_COMPILER_CLANG
#undef PLATFORM_COMPILER_CLANG_C
#undef PLATFORM_COMPILER_CLANG_CXX
#undef PLATFORM_COMPILER_INTEL
#undef PLATFORM_COMPILER_INTEL_C
#undef PLATFORM_COMPILER_INTEL_CXX
#undef PLATFORM_COMPILER_PGI
#undef PLATFORM_COMPILER_PGI_C
#undef PLATFORM_COMPILER_PGI_CXX
#undef PLATFORM_COMPILER_CRAY
#undef PLATFORM_COMPILER_CRAY_C
#undef PLATFORM_COMPILER_CRAY_CXX
#undef PLATFORM_COMPILER_TINY
#undef PLATFORM_COMPILER_TINY_C
#undef PLATFORM_COMPILER_TINY_CXX
#undef PLATFORM_COMPILER_FAMILYNAME
#undef PLATFORM_COMPILER_FAMILYID
#undef PLATFORM_COMPILER_ID
#undef PLATFORM_COMPILER_IDSTR
#undef PLATFORM_COMPILER_VERSION
#undef PLATFORM_COMPILER_VERSION_STR
#undef PLATFORM_COMPILER_VERSION_INT
#undef PLATFORM_COMPILER_VERSION_GT
#undef PLATFORM_COMPILER_VERSION_GE
#undef PLATFORM_COMPILER_VERSION_EQ
#undef PLATFORM_COMPILER_VERSION_LE
#undef PLATFORM_COMPILER_VERSION_LT
#undef PLATFORM_OS_FAMILYNAME
#undef PLATFORM_ARCH_FAMILYNAME

#define PLATFORM_HEADER_VERSION 3

#define GASNETI_STR_(x) #x
#define GASNETI_STR(x) GASNETI_STR_(x)

/* Compiler. Several compilers define __GNUC__ too, so GNU C is the last to be tested. */
#if defined(__INTEL_LLVM_COMPILER)
#define PLATFORM_COMPILER_INTEL 1
#define PLATFORM_COMPILER_FAMILYNAME INTEL
#define PLATFORM_COMPILER_FAMILYID 2
#define PLATFORM_COMPILER_VERSION __INTEL_LLVM_COMPILER
#define PLATFORM_COMPILER_VERSION_STR GASNETI_STR(__INTEL_LLVM_COMPILER)
#define PLATFORM_COMPILER_VERSION_INT(maj, min, pat) ((maj) * 10000 + (min) * 100 + (pat))
#elif defined(__INTEL_COMPILER)
#define PLATFORM_COMPILER_INTEL 1
#define PLATFORM_COMPILER_FAMILYNAME INTEL
#define PLATFORM_COMPILER_FAMILYID 2
#define PLATFORM_COMPILER_VERSION __INTEL_COMPILER
#define PLATFORM_COMPILER_VERSION_STR GASNETI_STR(__INTEL_COMPILER)
#define PLATFORM_COMPILER_VERSION_INT(maj, min, pat) ((maj) * 100 + (min) * 10 + (pat))
#elif defined(__PGI)
#define PLATFORM_COMPILER_PGI 1
#define PLATFORM_COMPILER_FAMILYNAME PGI
#define PLATFORM_COMPILER_FAMILYID 4
#define PLATFORM_COMPILER_VERSION ((__PGIC__ << 16) | (__PGIC_MINOR__ << 8) | __PGIC_PATCHLEVEL__)
#define PLATFORM_COMPILER_VERSION_STR                                                                                 \
  GASNETI_STR(__PGIC__) "." GASNETI_STR(__PGIC_MINOR__) "." GASNETI_STR(__PGIC_PATCHLEVEL__)
#elif defined(_CRAYC) && !defined(__clang__)
#define PLATFORM_COMPILER_CRAY 1
#define PLATFORM_COMPILER_FAMILYNAME CRAY
#define PLATFORM_COMPILER_FAMILYID 9
#define PLATFORM_COMPILER_VERSION ((_RELEASE << 16) | (_RELEASE_MINOR << 8))
#define PLATFORM_COMPILER_VERSION_STR GASNETI_STR(_RELEASE) "." GASNETI_STR(_RELEASE_MINOR)
#elif defined(__TINYC__)
#define PLATFORM_COMPILER_TINY 1
#define PLATFORM_COMPILER_FAMILYNAME TINY
#define PLATFORM_COMPILER_FAMILYID 14
#define PLATFORM_COMPILER_VERSION __TINYC__
#define PLATFORM_COMPILER_VERSION_STR GASNETI_STR(__TINYC__)
#elif defined(__clang__)
#define PLATFORM_COMPILER_CLANG 1
#define PLATFORM_COMPILER_FAMILYNAME CLANG
#define PLATFORM_COMPILER_FAMILYID 19
#define PLATFORM_COMPILER_VERSION ((__clang_major__ << 16) | (__clang_minor__ << 8) | __clang_patchlevel__)
#define PLATFORM_COMPILER_VERSION_STR                                                                                 \
  GASNETI_STR(__clang_major__) "." GASNETI_STR(__clang_minor__) "." GASNETI_STR(__clang_patchlevel__)
#elif defined(__GNUC__)
#define PLATFORM_COMPILER_GNU 1
#define PLATFORM_COMPILER_FAMILYNAME GNU
#define PLATFORM_COMPILER_FAMILYID 1
#define PLATFORM_COMPILER_VERSION ((__GNUC__ << 16) | (__GNUC_MINOR__ << 8) | __GNUC_PATCHLEVEL__)
#define PLATFORM_COMPILER_VERSION_STR                                                                                 \
  GASNETI_STR(__GNUC__) "." GASNETI_STR(__GNUC_MINOR__) "." GASNETI_STR(__GNUC_PATCHLEVEL__)
#else
#define PLATFORM_COMPILER_UNKNOWN 1
#define PLATFORM_COMPILER_FAMILYNAME UNKNOWN
#define PLATFORM_COMPILER_FAMILYID 10000
#define PLATFORM_COMPILER_VERSION 0
#define PLATFORM_COMPILER_VERSION_STR "unknown"
#endif

#ifndef PLATFORM_COMPILER_VERSION_INT
#define PLATFORM_COMPILER_VERSION_INT(maj, min, pat) (((maj) << 16) | ((min) << 8) | (pat))
#endif
#define PLATFORM_COMPILER_VERSION_GT(maj, min, pat)                                                                   \
  (PLATFORM_COMPILER_VERSION > PLATFORM_COMPILER_VERSION_INT(maj, min, pat))
#define PLATFORM_COMPILER_VERSION_GE(maj, min, pat)                                                                   \
  (PLATFORM_COMPILER_VERSION >= PLATFORM_COMPILER_VERSION_INT(maj, min, pat))
#define PLATFORM_COMPILER_VERSION_EQ(maj, min, pat)                                                                   \
  (PLATFORM_COMPILER_VERSION == PLATFORM_COMPILER_VERSION_INT(maj, min, pat))
#define PLATFORM_COMPILER_VERSION_LE(maj, min, pat)                                                                   \
  (PLATFORM_COMPILER_VERSION <= PLATFORM_COMPILER_VERSION_INT(maj, min, pat))
#define PLATFORM_COMPILER_VERSION_LT(maj, min, pat)                                                                   \
  (PLATFORM_COMPILER_VERSION < PLATFORM_COMPILER_VERSION_INT(maj, min, pat))

/* The language of this compilation. */
#ifdef __cplusplus
#define PLATFORM_COMPILER_ID (PLATFORM_COMPILER_FAMILYID + 10000)
#if defined(PLATFORM_COMPILER_GNU)
#define PLATFORM_COMPILER_GNU_CXX 1
#elif defined(PLATFORM_COMPILER_CLANG)
#define PLATFORM_COMPILER_CLANG_CXX 1
#elif defined(PLATFORM_COMPILER_INTEL)
#define PLATFORM_COMPILER_INTEL_CXX 1
#elif defined(PLATFORM_COMPILER_PGI)
#define PLATFORM_COMPILER_PGI_CXX 1
#elif defined(PLATFORM_COMPILER_CRAY)
#define PLATFORM_COMPILER_CRAY_CXX 1
#endif
#else
#define PLATFORM_COMPILER_ID PLATFORM_COMPILER_FAMILYID
#if defined(PLATFORM_COMPILER_GNU)
#define PLATFORM_COMPILER_GNU_C 1
#elif defined(PLATFORM_COMPILER_CLANG)
#define PLATFORM_COMPILER_CLANG_C 1
#elif defined(PLATFORM_COMPILER_INTEL)
#define PLATFORM_COMPILER_INTEL_C 1
#elif defined(PLATFORM_COMPILER_PGI)
#define PLATFORM_COMPILER_PGI_C 1
#elif defined(PLATFORM_COMPILER_CRAY)
#define PLATFORM_COMPILER_CRAY_C 1
#elif defined(PLATFORM_COMPILER_TINY)
#define PLATFORM_COMPILER_TINY_C 1
#endif
#endif
#define PLATFORM_COMPILER_IDSTR                                                                                       \
  "|COMPILER_FAMILY:" GASNETI_STR(PLATFORM_COMPILER_FAMILYNAME) "|COMPILER_VERSION:" PLATFORM_COMPILER_VERSION_STR "|"

/* Operating system. */
#if defined(__LINUX__) || defined(__linux__) || defined(__linux) || defined(linux)
#define PLATFORM_OS_LINUX 1
#define PLATFORM_OS_FAMILYNAME LINUX
#elif defined(__APPLE__) && defined(__MACH__)
#define PLATFORM_OS_DARWIN 1
#define PLATFORM_OS_FAMILYNAME DARWIN
#elif defined(__CYGWIN__)
#define PLATFORM_OS_CYGWIN 1
#define PLATFORM_OS_FAMILYNAME CYGWIN
#elif defined(__FreeBSD__)
#define PLATFORM_OS_FREEBSD 1
#define PLATFORM_OS_FAMILYNAME FREEBSD
#elif defined(__NetBSD__)
#define PLATFORM_OS_NETBSD 1
#define PLATFORM_OS_FAMILYNAME NETBSD
#elif defined(__OpenBSD__)
#define PLATFORM_OS_OPENBSD 1
#define PLATFORM_OS_FAMILYNAME OPENBSD
#elif defined(__sun) && defined(__SVR4)
#define PLATFORM_OS_SOLARIS 1
#define PLATFORM_OS_FAMILYNAME SOLARIS
#else
#define PLATFORM_OS_UNKNOWN 1
#define PLATFORM_OS_FAMILYNAME UNKNOWN
#endif

/* Processor. */
#if defined(__x86_64__) || defined(__x86_64) || defined(__amd64)
#define PLATFORM_ARCH_X86_64 1
#define PLATFORM_ARCH_FAMILYNAME X86_64
#define GASNETI_ARCH_STR "x86_64"
#elif defined(__i386__) || defined(__i386) || defined(__i686__)
#define PLATFORM_ARCH_X86 1
#define PLATFORM_ARCH_FAMILYNAME X86
#define GASNETI_ARCH_STR "i686"
#elif defined(__aarch64__)
#define PLATFORM_ARCH_AARCH64 1
#define PLATFORM_ARCH_FAMILYNAME AARCH64
#define GASNETI_ARCH_STR "aarch64"
#elif defined(__arm__)
#define PLATFORM_ARCH_ARM 1
#define PLATFORM_ARCH_FAMILYNAME ARM
#define GASNETI_ARCH_STR "arm"
#elif defined(_POWER) || defined(__powerpc__) || defined(__PPC__) || defined(__ppc__)
#define PLATFORM_ARCH_POWERPC 1
#define PLATFORM_ARCH_FAMILYNAME POWERPC
#define GASNETI_ARCH_STR "powerpc"
#elif defined(__riscv)
#define PLATFORM_ARCH_RISCV 1
#define PLATFORM_ARCH_FAMILYNAME RISCV
#define GASNETI_ARCH_STR "riscv"
#elif defined(__mips__) || defined(__mips)
#define PLATFORM_ARCH_MIPS 1
#define PLATFORM_ARCH_FAMILYNAME MIPS
#define GASNETI_ARCH_STR "mips"
#elif defined(__sparc__) || defined(__sparc)
#define PLATFORM_ARCH_SPARC 1
#define PLATFORM_ARCH_FAMILYNAME SPARC
#define GASNETI_ARCH_STR "sparc"
#elif defined(__s390x__) || defined(__s390__)
#define PLATFORM_ARCH_S390 1
#define PLATFORM_ARCH_FAMILYNAME S390
#define GASNETI_ARCH_STR "s390"
#else
#define PLATFORM_ARCH_UNKNOWN 1
#define PLATFORM_ARCH_FAMILYNAME UNKNOWN
#define GASNETI_ARCH_STR "unknown"
#endif

#if defined(_LP64) || defined(__LP64__) || (defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ == 8)
#define PLATFORM_ARCH_64 1
#else
#define PLATFORM_ARCH_32 1
#endif

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define PLATFORM_ARCH_BIG_ENDIAN 1
#else
#define PLATFORM_ARCH_LITTLE_ENDIAN 1
#endif

#endif
