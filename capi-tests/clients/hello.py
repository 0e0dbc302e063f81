"""A Python client by means of ctypes: every process puts its rank into the segment of the next one.

    gasnetrun -n 2 python3 hello.py <path of libgasnet.so>
"""

import ctypes
import sys


class SegInfo(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_void_p), ("size", ctypes.c_size_t)]


lib = ctypes.CDLL(sys.argv[1])
lib.gasnet_attach.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t]
lib.gasnet_put.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
lib.gasnet_put.restype = None
lib.gasnet_AMMaxMedium.restype = ctypes.c_size_t


def barrier():
    lib.gasnet_barrier_notify(0, 1)
    assert lib.gasnet_barrier_wait(0, 1) == 0


HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)
got = []
handler = HANDLER(lambda token, arg: got.append(arg))


class HandlerEntry(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint8), ("fnptr", HANDLER)]


table = (HandlerEntry * 1)(HandlerEntry(0, handler))
assert lib.gasnet_init(None, None) == 0
assert lib.gasnet_attach(table, 1, 65536, 0) == 0
me, nodes = lib.gasnet_mynode(), lib.gasnet_nodes()
segments = (SegInfo * nodes)()
assert lib.gasnet_getSegmentInfo(segments, nodes) == 0
succ, pred = (me + 1) % nodes, (me + nodes - 1) % nodes
rank = ctypes.c_uint32(me)
lib.gasnet_put(succ, segments[succ].addr, ctypes.byref(rank), 4)
barrier()
assert ctypes.c_uint32.from_address(segments[me].addr).value == pred
assert lib.gasnet_AMRequestShort1(succ, table[0].index, ctypes.c_int32(me)) == 0
while not got:
    lib.gasnet_AMPoll()
assert got == [pred]
barrier()
if me == 0:
    print("PASS with", nodes, "processes, Mediums up to", lib.gasnet_AMMaxMedium(), "bytes")
sys.stdout.flush()
lib.gasnet_exit(0)
