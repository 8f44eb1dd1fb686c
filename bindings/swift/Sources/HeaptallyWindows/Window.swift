import CHeaptally

/// Records what is allocated while `body` runs, on all threads, in the window of that name. Without `heaptally run` it only calls
/// `body`.
///
/// The name is a literal of more than one character, so that handing it over allocates nothing.
public func withAllocationWindow<Result>(
    _ name: StaticString, _ body: () throws -> Result
) rethrows -> Result {
    heaptally_window_begin(name.cString)
    defer { heaptally_window_end(name.cString) }
    return try body()
}

/// The same for what suspends: the window stays open meanwhile, so what other tasks allocate then is in it, too.
public func withAllocationWindow<Result>(
    _ name: StaticString,
    isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Result
) async rethrows -> Result {
    heaptally_window_begin(name.cString)
    defer { heaptally_window_end(name.cString) }
    return try await body()
}

extension StaticString {
    /// Its bytes, which a NUL ends.
    fileprivate var cString: UnsafePointer<CChar> {
        UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
