;;; Threads of SBCL: a mutex, a semaphore, collections that stop all of them, a thread that is terminated, a time limit, and another
;;; that computes, after an error of the processor's, until it is told to stop.
(defun conses (i)
  (let ((n 0))
    (dotimes (k 100 n)
      (incf n (length (make-list 5000 :initial-element i))))))

(defun all (n fn)
  (mapcar #'sb-thread:join-thread
          (loop for i below n
                collect (let ((i i)) (sb-thread:make-thread (lambda () (funcall fn i)))))))

(let ((mutex (sb-thread:make-mutex)) (n 0))
  (print (all 8 (lambda (i) (dotimes (k 1000) (sb-thread:with-mutex (mutex) (incf n))) (conses i))))
  (print n))
(let ((bell (sb-thread:make-semaphore)))
  (sb-thread:make-thread (lambda () (sb-thread:signal-semaphore bell 40)))
  (print (reduce #'+ (all 40 (lambda (i) (sb-thread:wait-on-semaphore bell) (sb-ext:gc) i)))))
(let ((sleeper (sb-thread:make-thread (lambda () (loop (sleep 10))))))
  (sb-thread:terminate-thread sleeper)
  (print (sb-thread:join-thread sleeper :default :gone)))
(print (handler-case (sb-ext:with-timeout 0.1 (loop)) (sb-ext:timeout () :time-is-over)))
;; the handler of the processor's trap is left by a jump of Lisp's own
(defvar *told* nil)
(print (handler-case (car (eval '(identity 1))) (type-error () :no-list)))
(let ((teller (sb-thread:make-thread (lambda () (dotimes (k 5) (sb-ext:gc)) (setf *told* t)))))
  (loop until *told*)
  (print (sb-thread:join-thread teller)))
(print (with-output-to-string (s) (sb-ext:run-program "/bin/echo" '("a program") :output s)))
(terpri)
