use super::*;

#[test]
fn class_of_a_size_holds_it_and_is_at_most_a_quarter_larger() {
    for size in [0, 1, WINDOW_SIZE, WINDOW_SIZE + 1, 100_000, 1 << 20, (1 << 20) + 12, (1 << 24) + 5, 1 << 30]
    {
        let (class, rounded) = class_of(size);
        assert!(rounded >= size);
        assert!(rounded <= size.max(WINDOW_SIZE) * 5 / 4);
        assert_eq!(class_of(rounded), (class, rounded), "{size}");
    }
}

#[test]
fn dropped_views_make_the_buffer_free_again() {
    let pool = BufferPool::new(1 << 20);
    let first = pool.share(pool.take(1000));
    let address = first.as_ptr();
    assert_eq!(address as usize % BASE_ALIGN, 0);
    let view = first.slice(10..20);
    drop(first);
    let other = pool.share(pool.take(1000));
    assert_ne!(other.as_ptr(), address, "the view keeps the first buffer");
    drop((view, other));
    for _ in 0..4 {
        let again = pool.share(pool.take(1000));
        let unshared = pool.take(1000);
        assert_ne!(again.as_ptr(), unshared.bytes().as_ptr());
        pool.give_back(unshared);
    }
    assert_eq!(pool.stats().misses, 2);
}

#[test]
fn a_buffer_that_grows_is_initialised_as_it_is_granted_and_stays_where_it_is() {
    let pool = BufferPool::new(4 << 20);
    for size in [1 << 20, 1_234_567] {
        let held = pool.stats().held;
        let mut buffer = pool.take_growing(size, WINDOW_SIZE).unwrap();
        let address = buffer.bytes().as_ptr();
        assert_eq!((address.addr() % BASE_ALIGN, buffer.bytes().len()), (0, WINDOW_SIZE));
        assert!(buffer.capacity() >= size && pool.stats().held == held + WINDOW_SIZE);
        assert!(pool.charge_more(&mut buffer, 2 * WINDOW_SIZE));
        assert!(buffer.bytes().len() >= 2 * WINDOW_SIZE && buffer.bytes().len() < size);
        // Bytes that are received before their memory is granted can be written too.
        buffer.writable_range(3 * WINDOW_SIZE..3 * WINDOW_SIZE + 2).unwrap().copy_from_slice(b"it");
        buffer.freeze();
        assert_eq!(&buffer.view(3 * WINDOW_SIZE - 1..3 * WINDOW_SIZE + 2)[..], b"\0it");
        assert!(buffer.reclaim() && buffer.bytes().len() < size);
        assert!(pool.charge_more(&mut buffer, usize::MAX));
        assert_eq!((buffer.bytes().as_ptr(), buffer.bytes().len()), (address, buffer.capacity()));
        assert_eq!(buffer.bytes()[3 * WINDOW_SIZE..3 * WINDOW_SIZE + 2], *b"it");
        pool.give_back(buffer);
        assert_eq!(pool.take(size).bytes().as_ptr(), address, "a completely charged buffer is pooled");
    }
    let held = pool.stats().held;
    // A buffer of which the rest was never received must not be pooled as a smaller one.
    for _ in 0..8 {
        pool.give_back(pool.take_growing(1 << 20, WINDOW_SIZE + BASE_ALIGN).unwrap());
    }
    assert_eq!(pool.stats().held, held);
}

#[test]
fn write_to_needs_the_only_view_of_a_buffer() {
    let pool = BufferPool::new(4 << 20);
    let others: Vec<Bytes> = (0..3).map(|_| pool.share(pool.take(100_000))).collect();
    let mut message = pool.share(pool.take(100_000)).slice(10..90_000);
    let (address, len) = (message.as_ptr(), message.len());
    let view = message.slice(5..6);
    assert!(!pool.write_to(&mut message, |_| unreachable!("another view exists")));
    assert_eq!((message.as_ptr(), message.len()), (address, len));
    drop(view);
    assert!(pool.write_to(&mut message, |bytes| bytes[5..8].copy_from_slice(b"new")));
    assert_eq!((message.as_ptr(), message.len(), &message[4..9]), (address, len, &b"\0new\0"[..]));
    drop(message);
    assert_eq!(
        pool.take(100_000).bytes().as_ptr().addr(),
        address.addr() - 10,
        "the buffer is pooled as before"
    );
    assert!(others.iter().all(|other| other.iter().all(|byte| *byte == 0)));
    let mut own = Bytes::from(vec![1; 100]);
    assert!(pool.write_to(&mut own, |bytes| bytes.fill(2)) && own == vec![2; 100]);
    let mut foreign = Bytes::from_static(b"static");
    assert!(!pool.write_to(&mut foreign, |_| unreachable!("static")) && foreign == "static");
}

#[test]
fn past_the_cap_buffers_are_not_kept() {
    let pool = BufferPool::new(WINDOW_SIZE);
    assert!(pool.try_take(10).is_none());
    let buffer = pool.take(10);
    assert_eq!(pool.stats().held, 0);
    drop(pool.share(buffer));
    drop(pool.take(10));
    assert_eq!(pool.stats().misses, 2);
}

#[test]
fn free_buffers_of_one_size_make_room_for_another() {
    let pool = BufferPool::new(4 * (WINDOW_SIZE + BASE_ALIGN));
    let windows: Vec<Bytes> = (0..4).map(|_| pool.share(pool.take(1))).collect();
    assert!(pool.try_take(2 * WINDOW_SIZE).is_none(), "views keep all buffers");
    drop(windows);
    let large = pool.try_take(2 * WINDOW_SIZE).unwrap();
    assert_eq!(large.charged, large.len());
    assert!(pool.stats().held <= pool.stats().cap);
}

#[test]
fn a_growing_buffer_is_charged_step_by_step() {
    let pool = BufferPool::new(1 << 20);
    let mut buffer = pool.take_growing(4 * WINDOW_SIZE, WINDOW_SIZE).unwrap();
    assert_eq!(pool.stats().held, WINDOW_SIZE);
    assert!(pool.charge_more(&mut buffer, 2 * WINDOW_SIZE));
    assert_eq!(pool.stats().held, 2 * WINDOW_SIZE);
    pool.give_back(buffer);
    assert_eq!(pool.stats().held, 0, "a buffer that is not completely charged is not kept");
    let mut buffer = pool.take_growing(4 * WINDOW_SIZE, WINDOW_SIZE).unwrap();
    assert!(pool.charge_more(&mut buffer, usize::MAX));
    pool.give_back(buffer);
    assert_eq!(pool.stats().held, 4 * WINDOW_SIZE + BASE_ALIGN);
    assert!(pool.take(4 * WINDOW_SIZE).capacity() >= 4 * WINDOW_SIZE);
    assert_eq!(pool.stats().misses, 2);
}

#[test]
fn a_trim_frees_large_buffers_that_were_not_used_since_the_last_one() {
    let pool = BufferPool::new(64 << 20);
    let (large, window) = (pool.take(15 << 20), pool.take(1000));
    pool.give_back(window);
    let message = pool.share(large);
    assert!(pool.trim(), "the buffer was used since the pool was created");
    assert!(pool.trim(), "a view keeps the buffer");
    drop(message);
    pool.give_back(pool.take(15 << 20));
    assert!(pool.trim(), "the buffer was used again");
    assert!(!pool.trim());
    let stats = pool.stats();
    assert_eq!(
        (stats.held, stats.free),
        (WINDOW_SIZE + BASE_ALIGN, WINDOW_SIZE + BASE_ALIGN),
        "the window stays"
    );
    assert_eq!((stats.hits, stats.misses), (1, 2));
}
