//! Names as compilers and demanglers write them: GCC 12 and 14 with libstdc++, Clang's libc++, Rust 1.9x with and without debug
//! information, Swift 6.3.

use super::*;
use crate::model::{Line, Location, Row, Stack, Window};
use crate::view::{Selection, Sort, View};

/// What a stack is: frames from behind the allocation function on, parted by `;`. Those that begin with `$s` or `_Z` are names in
/// the file, one with `@` has that source.
fn kind(frames: &str) -> String {
    let mut profile = Profile { windows: vec![Window::default()], ..Profile::default() };
    let mut stack = Stack::default();
    let mut push = |name: &str, kind: FrameKind| {
        let (name, file) = name.split_once('@').unwrap_or((name, ""));
        let is_swift = name.contains("Swift.") || file.ends_with(".swift");
        profile.functions.push(Function {
            name: name.into(),
            system_name: match name {
                _ if is_swift => "$s1a".into(),
                _ if name.starts_with("std::") => format!("_ZSt{name}"),
                _ => name.into(),
            },
            file: file.into(),
            ..Function::default()
        });
        let lines = vec![Line { function: profile.functions.len() - 1, line: 0 }];
        profile.locations.push(Location { kind, lines, ..Location::default() });
        stack.locations.push(profile.locations.len() - 1);
    };
    push("malloc", FrameKind::EntryPoint);
    frames.split(';').for_each(|name| push(name.trim(), FrameKind::Return));
    push("main", FrameKind::Return);
    profile.stacks.push(stack);
    profile.rows.push(Row::default());
    let rules = Rules::embedded();
    let sites = CallSites::new(&profile, rules);
    let view = View::new(&profile, &Selection::default(), &sites, Sort::Count);
    let kinds = Kinds::new(&profile, rules);
    let kind = kinds.of(&view.windows[0].rows[0], &sites).map(|kind| kinds.kind(kind));
    kind.map_or_else(String::new, |kind| match kind.of_type {
        Some(of_type) => format!("{} of {of_type}", kind.words),
        None => kind.words,
    })
}

#[test]
fn the_rules_name_kinds_that_exist() {
    assert_eq!(Rules::embedded().kinds().unknown(), [""; 0]);
}

#[test]
fn rust() {
    let grow = "alloc::alloc::realloc; alloc::raw_vec::finish_grow; alloc::raw_vec::RawVecInner<A>::grow_amortized; \
                alloc::raw_vec::RawVec<T,A>::grow_one";
    for (frames, expected) in [
        (format!("{grow}; alloc::vec::Vec<T,A>::push; a::f"), "array growth"),
        (format!("{grow}; alloc::string::String::push; a::f"), "string"),
        (format!("{grow}; alloc::vec::Vec<T,A>::push; alloc::string::String::push; a::f"), "string"),
        (format!("{grow}; alloc::collections::vec_deque::VecDeque<T,A>::push_back; a::f"), "deque"),
        (format!("{grow}; a::f; alloc::string::String::push"), "array growth"),
        (
            "alloc::alloc::Global::alloc_impl; alloc::raw_vec::RawVecInner<A>::with_capacity_in; \
             <alloc::string::String as core::clone::Clone>::clone; <alloc::vec::Vec<T,A> as core::clone::Clone>::clone; a::f"
                .into(),
            "string",
        ),
        (
            "alloc::raw_vec::RawVecInner<A>::with_capacity_in; alloc::vec::Vec<T>::with_capacity; a::f".into(),
            "array",
        ),
        ("alloc::alloc::exchange_malloc; alloc::boxed::Box<T>::new; a::f".into(), "box"),
        ("alloc::boxed::Box<T>::new; alloc::rc::Rc<T>::new; a::f".into(), "shared"),
        ("alloc::boxed::Box<T>::new; alloc::sync::Arc<T>::new; a::f".into(), "shared"),
        ("hashbrown::raw::RawTable<T,A>::reserve_rehash; hashbrown::map::HashMap<K,V,S,A>::insert; a::f".into(), "hash table"),
        ("alloc::collections::btree::map::entry::VacantEntry<K,V,A>::insert_entry; a::f".into(), "tree node"),
        ("alloc::fmt::format::format_inner; a::f".into(), "string"),
        ("alloc::sync::Arc<T>::new; std::thread::Builder::spawn_unchecked_; a::f".into(), "thread"),
        ("__rust_alloc; a::f".into(), ""),
        ("a::f".into(), ""),
    ] {
        assert_eq!(kind(&frames), expected, "{frames}");
    }
}

#[test]
fn cpp() {
    for (frames, expected) in [
        ("operator new(unsigned long); std::string::_M_create(unsigned long&, unsigned long); f()", "string"),
        (
            "std::__new_allocator<char>::allocate(unsigned long); std::__cxx11::basic_string<char>::_M_create(unsigned long&); f()",
            "string",
        ),
        (
            "std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>(int const&); f()",
            "array growth",
        ),
        (
            "std::_Vector_base<int, std::allocator<int> >::_M_allocate(unsigned long); std::vector<int>::reserve(unsigned long); f()",
            "array",
        ),
        (
            "std::_Vector_base<int>::_M_allocate(unsigned long); std::vector<int>::_M_realloc_append<int>(int&&); std::vector<int>::push_back(int&&); f()",
            "array growth",
        ),
        (
            "std::string::_M_construct<char const*>(char const*, char const*); std::vector<std::string>::vector(std::vector<std::string> const&); f()",
            "string",
        ),
        ("std::__shared_count<2>::__shared_count<A>(A*&); std::make_shared<A>(); f()", "shared"),
        ("std::make_unique<A, int>(int&&); f()", "box"),
        (
            "std::_Rb_tree<int, int>::_M_create_node<int>(int&&); std::map<int, int>::operator[](int const&); f()",
            "tree node",
        ),
        (
            "std::__detail::_Hashtable_alloc<A>::_M_allocate_node<int>(int&&); std::unordered_map<int, int>::emplace(int); f()",
            "hash node",
        ),
        (
            "std::__detail::_Hashtable_alloc<A>::_M_allocate_buckets(unsigned long); std::_Hashtable<int>::_M_rehash(unsigned long); f()",
            "hash table",
        ),
        (
            "std::_Function_base::_Base_manager<f()::{lambda()#1}>::_M_create<A>(); std::function<void ()>::function<A>(A&&); f()",
            "function",
        ),
        ("__cxa_allocate_exception; f()", "error"),
        ("operator new(unsigned long); f()", ""),
    ] {
        assert_eq!(kind(frames), expected, "{frames}");
    }
}

#[test]
fn c() {
    for (frames, expected) in [
        ("strdup; f", "string"),
        ("_IO_file_doallocate; _IO_doallocbuf; printf; f", "buffer"),
        ("fopen; f", "file"),
        ("_dl_allocate_tls; pthread_create; f", "thread"),
        ("xmalloc; f", ""),
    ] {
        assert_eq!(kind(frames), expected, "{frames}");
    }
}

#[test]
fn swift() {
    let object = "swift_slowAlloc; swift_allocObject";
    for (frames, expected) in [
        ("Node.__allocating_init", ""),
        (
            "a.Node.__allocating_init(Swift.Int) -> a.Node@a.swift; a.f() -> ()@a.swift",
            "class instance of Node",
        ),
        (
            "a.Node.init(Swift.Int) -> a.Node@a.swift; a.Node.__allocating_init(Swift.Int) -> a.Node@a.swift",
            "",
        ),
        ("a.Node.__allocating_init(Swift.Int) -> a.Node", ""),
        (
            "generic specialization <Swift.Int> of Swift._ContiguousArrayBuffer._consumeAndCreateNew(bufferIsUnique: Swift.Bool) -> (); Swift.Array.reserveCapacity(Swift.Int) -> (); a.f() -> ()@a.swift",
            "array",
        ),
        (
            "Swift._ContiguousArrayBuffer._consumeAndCreateNew(bufferIsUnique: Swift.Bool) -> (); generic specialization <Swift.Int> of Swift.Array.append(__owned A) -> (); a.f() -> ()@a.swift",
            "array growth",
        ),
        (
            "Swift.(_allocateStringStorage in _A317)(codeUnitCapacity: Swift.Int) -> (); Swift._StringGuts.grow(Swift.Int) -> (); a.f() -> ()@a.swift",
            "string",
        ),
        (
            "static Swift._DictionaryStorage.allocate(scale: Swift.Int8) -> (); Swift._NativeDictionary._copyOrMoveAndResize(capacity: Swift.Int) -> (); a.f() -> ()@a.swift",
            "hash table",
        ),
        ("swift_allocError; a.f() -> ()@a.swift", "error"),
        ("swift_task_create_common; a.f() -> ()@a.swift", "task"),
        ("a.f() -> ()@a.swift", ""),
        ("a.Array.append(Swift.Int) -> ()@a.swift", ""),
    ] {
        assert_eq!(kind(&format!("{object}; {frames}")), expected, "{frames}");
    }
    let slab = "swift::StackAllocator<984ul, &swift::TaskAllocatorSlabMetadata>::alloc(unsigned long); swift_task_create_common; a.f() -> ()@a.swift";
    assert_eq!(kind(slab), "async slab");
}

#[test]
fn a_users_kinds_are_added() {
    let mut rules = Rules::embedded().clone();
    rules.extend(
        &Rules::parse("[kind arena over box]\nmine::Arena::*\n[kind string]\nmine::Text::*").unwrap(),
    );
    let of = |name: &str| {
        let kind = rules.kinds().of(&[name.to_owned()]);
        kind.map(|kind| rules.kinds().words(kind).to_owned()).unwrap_or_default()
    };
    assert_eq!([of("mine::Arena::grow"), of("mine::Text::new"), of("mine::f")], ["arena", "string", ""]);
    let error = Rules::parse("[kind ]\nx").unwrap_err().to_string();
    assert!(error.contains("line 1") && error.contains("names no kind"), "{error}");
}
