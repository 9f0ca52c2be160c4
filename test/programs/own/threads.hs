-- Threads of the -threaded runtime: channels, MVars, foreign calls that wait.
import Control.Concurrent
import Control.Monad
import Foreign.C.Types

foreign import ccall safe "usleep" cUsleep :: CUInt -> IO CInt

main :: IO ()
main = do
  results <- newChan
  total <- newMVar (0 :: Int)
  forM_ [1 .. 50] $ \n -> forkIO $ do
    let s = sum [x `mod` 7 | x <- [1 .. n * 1000]]
    modifyMVar_ total (return . (+ s))
    writeChan results s
  back <- replicateM 50 (readChan results)
  t <- takeMVar total
  print (t == sum back, t)
  ends <- forM [1 .. 8] $ \n -> do
    end <- newEmptyMVar
    _ <- forkOS (cUsleep (n * 1000) >> putMVar end ())
    return end
  mapM_ takeMVar ends
  threadDelay 10000
  putStrLn "bound threads ended"
