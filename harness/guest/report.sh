# shellcheck shell=bash
# What in a kernel log fails a run. Sourced by the host's and the guest's scripts.

# shellcheck disable=SC2034 # used by those who source it
REPORT='WARNING:|BUG:|KASAN:|KCSAN:|UBSAN:|Oops|Call Trace|general protection'
REPORT+='|possible circular locking|possible recursive locking|possible irq lock inversion'
REPORT+='|inconsistent lock state|suspicious RCU usage|INFO: task .* blocked|soft lockup'
REPORT+='|rcu_[a-z]*:? .*(stall|detected)|Kernel panic|kmemleak: [0-9]+ new suspected'
REPORT+='|refcount_t:|unregister_netdevice: waiting|Bad page state|list_(add|del) corruption'
