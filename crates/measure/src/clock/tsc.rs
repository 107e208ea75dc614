//! The time stamp counter of x86: whether it is usable, and reading it.

/// Reads the counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn read() -> u64 {
    // SAFETY: RDTSC exists on every x86_64 processor and touches no memory. It faults only under
    // CR4.TSD. Linux sets that for a thread that requests it by prctl(PR_SET_TSC); this program
    // does not.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Reads the counter after all earlier loads.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(
    unused_unsafe,
    reason = "newer compilers have made _mm_lfence a safe function, the oldest supported one has not"
)]
pub(super) fn read_after_loads() -> u64 {
    // SAFETY: LFENCE belongs to SSE2, which every x86_64 processor has, and touches no memory.
    unsafe { std::arch::x86_64::_mm_lfence() };
    read()
}

/// Never called: [`unusable`] refuses the counter first.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn read() -> u64 {
    unreachable!("there is no time stamp counter on this architecture")
}

/// Never called, like `read`.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn read_after_loads() -> u64 {
    read()
}

/// Why the counter cannot be used as a clock here; `None` when it can.
pub(super) fn unusable() -> Option<&'static str> {
    if !is_invariant() {
        return Some("the processor does not promise a constant rate");
    }
    let sources =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    match sources {
        Ok(names) if !kernel_offers_tsc(&names) => Some("the kernel found the counter unstable"),
        _ => None,
    }
}

/// Whether the counter is among the kernel's clock sources. The kernel removes it from the list
/// when its watchdog finds it unstable (`clocksource_mark_unstable` in kernel/time/clocksource.c
/// clears the flag that the list needs).
pub(super) fn kernel_offers_tsc(available_clocksource: &str) -> bool {
    available_clocksource.split_whitespace().any(|name| name == "tsc")
}

/// CPUID 8000_0007h, EDX bit 8.
#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    const POWER_LEAF: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    cpuid(0x8000_0000).eax >= POWER_LEAF && cpuid(POWER_LEAF).edx & INVARIANT_TSC != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn is_invariant() -> bool {
    false
}

/// The CPUID instruction.
#[cfg(target_arch = "x86_64")]
#[allow(
    unused_unsafe,
    reason = "newer compilers have made __cpuid a safe function, the oldest supported one has not"
)]
fn cpuid(leaf: u32) -> std::arch::x86_64::CpuidResult {
    // SAFETY: CPUID exists on every x86_64 processor and touches no memory.
    unsafe { std::arch::x86_64::__cpuid(leaf) }
}
